/** A log of so many events for one bench: `--events=N` (default 1,000,000), `--dir=FOLDER` to keep it. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { eventLogFile } from '../../src/adapters/embedded/eventStore/log.js';
import { generateHistory } from './history.js';

/** @param measure gets the log's folder, which is removed behind it unless `--dir` names one */
export async function onLargeLog(name: string, measure: (dir: string, events: number) => Promise<void>): Promise<void> {
  const { values } = parseArgs({
    options: {
      events: { type: 'string', default: '1000000' },
      dir: { type: 'string' },
      generate: { type: 'boolean', default: false },
    },
  });
  const { dir = mkdtempSync(join(tmpdir(), `${name}-`)), generate } = values;
  const events = Number(values.events);
  if (generate) {
    generateHistory({ dir, events });
    return;
  }
  try {
    // In a process of its own: its memory is not what is measured here.
    if (!existsSync(eventLogFile(dir)))
      execFileSync(process.execPath, [process.argv[1] ?? '', '--generate', '--dir', dir, '--events', values.events], {
        stdio: 'inherit',
      });
    await measure(dir, events);
  } finally {
    if (values.dir === undefined) rmSync(dir, { recursive: true });
  }
}
