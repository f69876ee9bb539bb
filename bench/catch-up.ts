/**
 * How fast all projections are built from an empty read store, beside what can't be avoided: reading the log, and
 * writing the same documents. `--events=N` makes a log of so many events (default 1,000,000), `--dir=FOLDER` keeps it
 * there: one that stands there already is used as it is.
 */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore/readStore.js';
import { collectionOf } from '../src/runtime/readmodels/projection.js';
import { startProjector } from '../src/runtime/readmodels/projector.js';
import { PROJECTIONS } from '../src/projections/index.js';
import { loadConfig } from '../src/service/config.js';
import { openLog } from '../src/service/engines.js';
import { onLargeLog } from './support/largeLog.js';
import { rawRead, sameDocuments } from './support/raw.js';

await onLargeLog('catch-up', async (dir) => {
  const caughtUp = await catchUp(dir);
  const read = await rawRead(dir);
  const written = await sameDocuments(dir, PROJECTIONS.filter(({ last }) => last !== true).map(collectionOf));
  const slower = Math.max(read.seconds, written.seconds);
  const line = (what: string, count: number, unit: string, seconds: number): string =>
    `${what.padEnd(34)}${String(count).padStart(9)} ${unit.padEnd(10)}${seconds.toFixed(2).padStart(7)} s${Math.round(
      count / seconds,
    )
      .toLocaleString('en')
      .padStart(10)} /s`;
  process.stdout.write(
    [
      line('reading the log raw', read.count, 'events', read.seconds),
      line('writing the same documents', written.count, 'documents', written.seconds),
      line('catching up all but the feed', read.count, 'events', caughtUp.seconds),
      line('then the event feed', read.count, 'events', caughtUp.feedSeconds),
      `ratio to the slower of the two: ${(slower / caughtUp.seconds).toFixed(2)} (at least 0.5)`,
      `peak resident memory ${Math.round(caughtUp.peakBytes / 1e6)} MB, longest event loop delay ${caughtUp.delayMs.toFixed(0)} ms`,
      '',
    ].join('\n'),
  );
});

async function catchUp(dir: string): Promise<{
  seconds: number;
  feedSeconds: number;
  peakBytes: number;
  delayMs: number;
}> {
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dir, `read.db${suffix}`), { force: true });
  const { events } = await openLog(loadConfig({ DATA_DIR: dir }));
  const store = await openEmbeddedReadStore({ dir });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  const logger = pino({ level: 'warn' });
  const projector = await startProjector({ events, store, projections: PROJECTIONS, logger, holder: 'bench' });
  const secondsUntil = async (names: readonly string[]): Promise<number> => {
    for (;;) {
      const done = projector.kept().filter(({ caughtUp }) => caughtUp);
      if (names.every((name) => done.some(({ projection }) => projection === name)))
        return (performance.now() - began) / 1e3;
      await sleep(5);
    }
  };
  const seconds = await secondsUntil(PROJECTIONS.filter(({ last }) => last !== true).map(({ name }) => name));
  const feedSeconds = (await secondsUntil(PROJECTIONS.map(({ name }) => name))) - seconds;
  delay.disable();
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  await projector.close();
  await store.close();
  await events.close();
  return { seconds, feedSeconds, peakBytes, delayMs: delay.max / 1e6 };
}
