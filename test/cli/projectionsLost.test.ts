/** A rebuild whose read store falls silent, or ends, in the middle. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory } from '../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { openMongoReadStore } from '../../src/adapters/mongodb/readStore.js';
import type { ReadStore } from '../../src/ports/readStore.js';
import { giftsProjection } from '../../src/projections/gifts.js';
import { buildOf } from '../../src/runtime/readmodels/buildNumbers.js';
import { rebuildOf } from '../../src/runtime/readmodels/rebuildRecord.js';
import { startProjector } from '../../src/runtime/readmodels/projector.js';
import { gift, type Ran, sink } from '../support/service/cli.js';
import { type MongoServer, mongoMissing, startMongo } from '../support/engines/mongoServer.js';
import { silent } from '../support/fixtures/projecting.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { eventually } from '../support/assertions/until.js';

const test = suite('a rebuild whose engine is lost');
const NAME = 'it waits for the engine and goes on from where it was';
const INTERRUPTED = 'interrupted while it waits, it says how it goes on';
let server: MongoServer;

interface Lost {
  readonly env: Readonly<Record<string, string>>;
  readonly store: ReadStore;
}

/** Begins a rebuild that goes slowly; the server is there, and some of it is stored. */
async function building(go: (lost: Lost) => Promise<void>, begin: (env: Lost['env']) => unknown): Promise<void> {
  const dir = mkdtempSync(join(tmpdir(), 'cli-lost-'));
  server = await startMongo({ durable: true });
  const env = { DATA_DIR: dir, MONGODB_URL: `${server.url}gift` };
  const events = await (async () => {
    generateHistory({ dir, events: 3_000, seed: 5 });
    return openEmbeddedEventStore({ dir });
  })();
  const store = await openMongoReadStore({ url: env.MONGODB_URL });
  try {
    const projector = await startProjector({
      events,
      store,
      projections: [giftsProjection],
      logger: silent,
      holder: 'first',
    });
    try {
      await eventually(async () => projector.kept().some(({ caughtUp }) => caughtUp));
    } finally {
      await projector.close();
    }
    // Requests are answered meanwhile, as far as it can tell: it goes slowly, some 500 events a second, and its first
    // are stored long before its last.
    await store.records.put('serving/somebody', { requests: 100, delayMs: 50 });
    begin(env);
    const stored = async (): Promise<string | undefined> =>
      store.checkpoint(`gifts@${(await rebuildOf(store, 'gifts'))?.value.target ?? 0}`);
    await eventually(stored);
    assert.is((await rebuildOf(store, 'gifts'))?.value.state, 'building', 'it is lost in the middle');
    await go({ env, store });
  } finally {
    await store.close();
    await events.close();
    await server.stop();
    rmSync(dir, { recursive: true });
  }
}

async function lost(): Promise<void> {
  const err = sink();
  const out = sink();
  const said = (): Record<string, unknown>[] =>
    out
      .text()
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  const waits = async (): Promise<boolean> => said().some(({ action }) => action === 'waiting');
  let running: Promise<Ran> | undefined;
  await building(
    async ({ env, store }) => {
      const target = (await rebuildOf(store, 'gifts'))?.value.target;
      server.signal('SIGKILL');
      // What comes back before anybody has missed it need not be waited for.
      await eventually(waits);
      await server.restart();
      await eventually(async () => store.records.delete('serving/somebody').catch(() => undefined));
      const { code } = (await running) as Ran;
      const lines = said();
      assert.is(code, 0, err.text());
      assert.equal(
        [lines.at(-1)?.['action'], lines.at(-1)?.['build'], lines.at(-1)?.['resumed']],
        ['done', buildOf(target ?? 0).build, true],
      );
      const again = await gift(env, ['projections', 'rebuild', 'gifts', '--json']);
      assert.is(lines.at(-1)?.['events'], again.records().at(-1)?.['events'], 'each event counts once');
      assert.is((await gift(env, ['projections', 'verify', 'gifts'])).code, 0);
    },
    (env) =>
      (running = gift(env, ['projections', 'rebuild', 'gifts', '--json'], { stdout: out.stream, stderr: err.stream })),
  );
}

async function interrupted(): Promise<void> {
  const stop = new AbortController();
  const err = sink(true);
  let running: Promise<Ran> | undefined;
  await building(
    async () => {
      server.signal('SIGKILL');
      await eventually(async () => err.text().includes('waiting for it'));
      stop.abort();
      assert.is((await running)?.code, 130, err.text());
      assert.match(err.text(), /interrupted: repeat the command, and the rebuild of gifts goes on from where it was/);
    },
    (env) => (running = gift(env, ['projections', 'rebuild', 'gifts'], { stderr: err.stream, signal: stop.signal })),
  );
}

const missing = mongoMissing();
for (const [name, body] of [
  [NAME, lost],
  [INTERRUPTED, interrupted],
] as const)
  testWhere(test, missing === undefined, missing ?? '', name, body);

test.run();
