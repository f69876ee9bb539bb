/** Writes what a bench found to `bench/results/`, as a page with a table, and a plot. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Chart, plot } from './plot.js';
import { markdown } from './report.js';

const FOLDER = fileURLToPath(new URL('../../../bench/results/', import.meta.url));

interface Results {
  readonly title: string;
  /** Sentences below the title, after the one that says what has written the page. */
  readonly about?: string;
  readonly rows: Parameters<typeof markdown>[0];
  /** Values of x that all charts share. */
  readonly xs: readonly number[];
  readonly charts: readonly Chart[];
}

/** @param bench its name, which becomes that of the files */
export function writeResults(bench: string, { title, about = '', rows, xs, charts }: Results): void {
  const origin = `Written by \`npm run bench -- ${bench}\`; the plot is [${bench}.svg](${bench}.svg).`;
  const page = [`# ${title}`, '', `${origin}${about === '' ? '' : `\n${about}`}`, '', markdown(rows), ''];
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(join(FOLDER, `${bench}.md`), page.join('\n'));
  writeFileSync(join(FOLDER, `${bench}.svg`), plot(xs, charts));
}
