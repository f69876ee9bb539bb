/** A progress bar on one line of standard error, and only on a terminal. */
import { Presets, SingleBar } from 'cli-progress';
import type { Terminal } from './terminal.js';

/** A bar. */
export interface Progress {
  /** `total` undefined: not known yet. */
  (done: number, total: number | undefined, note?: string): void;
  /** Removes the bar; what comes next begins it anew. */
  clear(): void;
}

/** What the bar says. */
export interface ProgressWords {
  /** What is being done: `rebuilding gifts`. */
  readonly doing: string;
  /** What is counted: `events`. */
  readonly unit: string;
}

/** A bar: what is done of all, how many a second, how long it will take. */
export function progressBar(stderr: Terminal['stderr'], { doing, unit }: ProgressWords): Progress {
  let bar: SingleBar | undefined;
  let begunAt = 0;
  let begunWith = 0;
  const show = (done: number, total: number | undefined, note = ''): void => {
    if (stderr.isTTY !== true) return;
    if (bar === undefined) {
      bar = new SingleBar({
        stream: stderr as unknown as NodeJS.WriteStream, clearOnComplete: true, hideCursor: false, fps: 10, noTTYOutput: false, gracefulExit: false, etaBuffer: 50,
        barsize: 24, format: `${doing} {bar} {percentage} % | {done} of {all} ${unit} | {rate}/s | {eta_formatted} left{note}`,
      }, Presets.shades_classic);
      begunAt = performance.now();
      begunWith = done;
      bar.start(total ?? 0, done, wordsOf(done, total, 0, note));
    }
    if (total !== undefined) bar.setTotal(total);
    bar.update(done, wordsOf(done, total, (done - begunWith) / Math.max(0.001, (performance.now() - begunAt) / 1_000), note));
  };
  return Object.assign(show, {
    clear(): void {
      bar?.stop();
      bar = undefined;
    },
  });
}

/** One bar after the other, by what is being done. */
export interface ProgressBars {
  show(doing: string, done: number, total: number | undefined): void;
  clear(): void;
}

/** Bars of work on events in several steps. */
export function progressBars(stderr: Terminal['stderr']): ProgressBars {
  let now: { readonly doing: string; readonly bar: Progress } | undefined;
  return {
    show(doing, done, total) {
      if (now?.doing !== doing) {
        now?.bar.clear();
        now = { doing, bar: progressBar(stderr, { doing, unit: 'events' }) };
      }
      now.bar(done, total);
    },
    clear: () => now?.bar.clear(),
  };
}

function wordsOf(done: number, total: number | undefined, rate: number, note: string): Record<string, string> {
  const inWords = (count: number): string => Math.round(count).toLocaleString('en-GB');
  return { done: inWords(done), all: total === undefined ? '?' : inWords(total), rate: inWords(rate), note: note === '' ? '' : ` | ${note}` };
}
