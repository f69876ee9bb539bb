/**
 * Pages of 100 events of one buyer at several depths of a large log, and how long the feed takes to be built.
 * `--events=N` makes a log of so many events (default 1,000,000), `--dir=FOLDER` keeps it there, read models included.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pino from 'pino';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore/readStore.js';
import { feedPage, type Viewer } from '../src/projections/feed/feedPage.js';
import type { Position } from '../src/ports/eventStore.js';
import { feedProjection } from '../src/projections/feed/feed.js';
import type { Projection } from '../src/runtime/readmodels/projection.js';
import { startProjector } from '../src/runtime/readmodels/projector.js';
import { openReadModel } from '../src/runtime/readmodels/readModel.js';
import { loadConfig } from '../src/service/config.js';
import { openLog } from '../src/service/engines.js';
import { onLargeLog } from './support/largeLog.js';

const LIMIT = 100;
const PAGES = 200;
const DEPTHS = [0, 0.25, 0.5, 0.75, 0.99];

const BUYER: Viewer = { kind: 'user', user: { id: 'u0', merchant_id: null } };

await onLargeLog('event-feed', async (dir) => {
  const { events } = await openLog(loadConfig({ DATA_DIR: dir }));
  const store = await openEmbeddedReadStore({ dir });
  const feed = openReadModel(store, feedProjection);
  const began = performance.now();
  const projector = await startProjector({
    events,
    store,
    projections: [feedProjection as unknown as Projection],
    logger: pino({ level: 'warn' }),
    holder: 'bench',
  });
  while (!projector.kept().some(({ caughtUp }) => caughtUp)) await sleep(20);
  process.stdout.write(`built in ${((performance.now() - began) / 1e3).toFixed(1)} s (${join(dir, 'read.db')})\n`);

  const places: (Position | undefined)[] = [undefined];
  let count = 0;
  for (let after: Position | undefined; ;) {
    const { entries, through, more } = await feedPage(feed, BUYER, { after, limit: 500 });
    count += entries.length;
    if (!more) break;
    places.push((after = through));
  }
  process.stdout.write(`${count.toLocaleString('en')} events of one buyer\n`);
  for (const depth of DEPTHS) {
    const after = places[Math.floor(depth * places.length)];
    const times: number[] = [];
    for (let page = 0; page < PAGES; page++) {
      const started = performance.now();
      await feedPage(feed, BUYER, { after, limit: LIMIT });
      times.push(performance.now() - started);
    }
    times.sort((one, other) => one - other);
    const at = (share: number): string => (times[Math.floor(share * PAGES)] ?? 0).toFixed(2);
    process.stdout.write(
      `at ${String(depth * 100).padStart(2)} %: a page of ${LIMIT} in ${at(0.5)} ms, p99 ${at(0.99)} ms\n`,
    );
  }
  await projector.close();
  await store.close();
  await events.close();
});
