/** A rebuild whose read store falls silent, or ends, in the middle. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore.js';
import { openMongoReadStore } from '../../src/adapters/mongodb.js';
import { rebuildOf } from '../../src/projections/builds.js';
import { gifts } from '../../src/projections/gifts.js';
import { startProjector } from '../../src/projections/projector.js';
import { generateHistory } from '../../bench/support/history.js';
import { gift, sink } from '../support/cli.js';
import { type MongoServer, mongoMissing, startMongo } from '../support/mongoServer.js';
import { silent, until } from '../support/projecting.js';

const test = suite('a rebuild whose engine is lost');
const NAME = 'it waits for the engine and goes on from where it was';
let server: MongoServer;

async function lost(): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'cli-lost-'));
  server = await startMongo({ durable: true });
  const env = { DATA_DIR: dir, MONGODB_URL: `${server.url}gift` };
  const events = await (async () => {
    generateHistory({ dir, events: 3_000, seed: 5 });
    return openEmbeddedEventStore({ dir });
  })();
  const store = await openMongoReadStore({ url: env.MONGODB_URL });
  try {
    const projector = await startProjector({ events, store, projections: [gifts], logger: silent, holder: 'first' });
    try {
      await until(() => projector.status().every(({ caughtUp }) => caughtUp), 'the projector');
    } finally {
      await projector.close();
    }
    // Requests are answered meanwhile, as far as it can tell: it goes slowly.
    await store.records.put('serving/somebody', { requests: 100, delayMs: 50 });
    const err = sink();
    const running = gift(env, ['projections', 'rebuild', 'gifts', '--json'], { stderr: err.stream });
    const stored = async (): Promise<string | undefined> => store.checkpoint(`gifts@${(await rebuildOf(store, 'gifts'))?.value.target ?? 0}`);
    await until(async () => (await stored()) !== undefined, 'some of it to be stored');
    const target = (await rebuildOf(store, 'gifts'))?.value.target;
    server.signal('SIGKILL');
    await sleep(1_000);
    await server.restart();
    await until(async () => (await store.records.delete('serving/somebody').catch(() => undefined)) !== undefined, 'the server to be back');
    const { code, records } = await running;
    const lines = records();
    assert.is(code, 0, err.text());
    assert.ok(lines.some(({ action }) => action === 'waiting'), 'it says that it waits');
    assert.equal([lines.at(-1)?.['action'], lines.at(-1)?.['build'], lines.at(-1)?.['resumed']], ['done', target, true]);
    const again = await gift(env, ['projections', 'rebuild', 'gifts', '--json']);
    assert.is(lines.at(-1)?.['events'], again.records().at(-1)?.['events'], 'each event counts once');
    assert.is((await gift(env, ['projections', 'verify', 'gifts'])).code, 0);
  } finally {
    await store.close();
    await events.close();
    await server.stop();
    rmSync(dir, { recursive: true });
  }
}

const missing = mongoMissing();
if (missing === undefined) {
  test(NAME, lost);
} else {
  console.log(`skipped: ${NAME}: ${missing}`);
  test.skip(NAME, lost);
}

test.run();
