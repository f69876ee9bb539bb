import { randomBytes } from 'node:crypto';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../src/adapters/embedded/driver.js';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedKeyStore } from '../../../src/adapters/embedded/keyStore/keyStore.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { KeyStore } from '../../../src/ports/keyStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { event, failureOf } from '../../support/engines/eventStoreEvents.js';
import { eventually } from '../../support/assertions/until.js';

interface Context {
  dir: string;
  log: EventStore;
  store: ReadStore;
  keys: KeyStore;
}

const test = suite<Context>('Files of an open database that are altered in place');

/** More than the time between two looks. */
const LOOKED_MS = 750;

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-altered-'));
  const { dir } = context;
  context.log = await openEmbeddedEventStore({ dir, longLived: true });
  context.store = await openEmbeddedReadStore({ dir, longLived: true });
  context.keys = await openEmbeddedKeyStore({ dir, longLived: true });
});
test.after.each(async ({ dir, log, store, keys }) => {
  await Promise.all([log.close(), store.close(), keys.close()]);
  rmSync(dir, { recursive: true, force: true });
});

function refusedFor(name: string, error: unknown): void {
  assert.instance(error, UnavailableError);
  assert.is(
    (error as UnavailableError).publicReason,
    `${name} was altered in place under the service: writes are refused until it is started again`,
  );
}

async function append(log: EventStore, stream: string): Promise<unknown> {
  return log.append(stream, [event()], 'none');
}

/** Moves the WAL's pages into the file, as the service's own threads do. */
function move(file: string): void {
  const database = new Sqlite(file);
  database.pragma('wal_checkpoint(PASSIVE)');
  database.close();
}

const erasureId = (): string => randomBytes(16).toString('base64url');

const WRITES: Readonly<Record<string, (context: Context) => Promise<unknown>>> = {
  'events.db': async ({ log }) => append(log, `of-${Math.random()}`),
  'read.db': async ({ store }) => store.records.put('key', { n: Math.random() }),
  'keys.db': async ({ keys }) => keys.putErasure({ id: erasureId(), text: '{}' }),
};

for (const [name, write] of Object.entries(WRITES)) {
  const wal = `${name}-wal`;

  test(`refuses the write after ${wal} was emptied, and all later ones`, async (context) => {
    await write(context);
    truncateSync(join(context.dir, wal));
    for (let n = 0; n < 3; n++) refusedFor(wal, await failureOf(write(context)));
    await sleep(LOOKED_MS);
    refusedFor(wal, await failureOf(write(context)));
  });

  test(`refuses writes once ${wal} was emptied and has grown again`, async (context) => {
    await write(context);
    const { size } = statSync(join(context.dir, wal));
    truncateSync(join(context.dir, wal));
    // What a commit that was under way writes beyond the end.
    truncateSync(join(context.dir, wal), size * 2);
    refusedFor(wal, await failureOf(write(context)));
  });

  test(`refuses writes once ${name} was overwritten by a shorter copy`, async (context) => {
    const file = join(context.dir, name);
    for (let n = 0; n < 200; n++) await write(context);
    move(file);
    copyFileSync(file, join(context.dir, 'old'));
    truncateSync(join(context.dir, 'old'), statSync(file).size - 4_096);
    await write(context);
    writeFileSync(file, readFileSync(join(context.dir, 'old')));
    refusedFor(name, await failureOf(write(context)));
  });
}

test('is not ready for good once a file was altered, though nothing is written', async ({ dir, log, store, keys }) => {
  await append(log, 'before');
  await store.records.put('key', { n: 1 });
  await keys.putErasure({ id: erasureId(), text: '{}' });
  for (const name of Object.keys(WRITES)) truncateSync(join(dir, `${name}-wal`));
  for (const [name, part] of Object.entries({ 'events.db': log, 'read.db': store, 'keys.db': keys })) {
    // Until the next look at the files, it may be a read that fails.
    const refused = (error: unknown): boolean => (error as UnavailableError).publicReason?.includes('altered') === true;
    await eventually(async () => part.ping().then(() => false, refused), name);
    refusedFor(`${name}-wal`, await failureOf(part.ping()));
  }
  truncateSync(join(dir, 'events.db-wal'), 1_000_000);
  await sleep(LOOKED_MS);
  refusedFor('events.db-wal', await failureOf(log.ping()));
});

test('takes no WAL for an altered one that other connections restart and cut all the time', async (context) => {
  const others = Object.keys(WRITES).map((name) => new Sqlite(join(context.dir, name)));
  const until = performance.now() + 2_000;
  while (performance.now() < until) {
    await Promise.all([...Object.values(WRITES), ...Object.values(WRITES)].map(async (write) => write(context)));
    for (const other of others) other.pragma(`wal_checkpoint(${Math.random() < 0.5 ? 'RESTART' : 'TRUNCATE'})`);
    await context.store.scrub();
  }
  for (const other of others) other.close();
  await Promise.all([context.log.ping(), context.store.ping(), context.keys.ping()]);
});

async function vacuumed({ dir, store }: Context, pauseMs: number): Promise<void> {
  const collection = { name: 'things', version: 1, indexes: [] };
  await store.ensure(collection);
  await store.write([
    {
      collection,
      documents: Array.from({ length: 1_000 }, (_, n) => ({
        id: `${n}`,
        position: '1',
        body: { text: 'x'.repeat(500) },
      })),
    },
  ]);
  const file = join(dir, 'read.db');
  move(file);
  await sleep(LOOKED_MS);
  await store.drop(collection);
  const before = statSync(file).size;
  const other = new Sqlite(file);
  other.exec('VACUUM');
  await sleep(pauseMs);
  await eventually(async () => {
    // Its reader needs no earlier pages any more.
    await store.ping();
    move(file);
    return statSync(file).size < before;
  });
  other.close();
  await sleep(LOOKED_MS);
  await store.records.put('key', { n: 2 });
  await store.ping();
}

for (const pauseMs of [0, LOOKED_MS])
  test(`allows a VACUUM of another process whose pages are moved ${pauseMs} ms later`, async (context) =>
    vacuumed(context, pauseMs));

test.run();
