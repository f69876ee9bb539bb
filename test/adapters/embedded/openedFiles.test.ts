import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { event, failureOf } from '../../support/engines/eventStoreEvents.js';
import { eventually } from '../../support/assertions/until.js';

interface Context {
  dir: string;
  log: EventStore;
  store: ReadStore;
}

const test = suite<Context>('Files of an open database that are removed or replaced');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-gone-'));
  context.log = await openEmbeddedEventStore({ dir: context.dir });
  context.store = await openEmbeddedReadStore({ dir: context.dir });
});
test.after.each(async ({ dir, log, store }) => {
  await Promise.all([log.close(), store.close()]);
  rmSync(dir, { recursive: true, force: true });
});

/** Runs `use` on the files as a killed process would leave them at this moment. */
async function afterKill<T>(dir: string, use: (left: string) => Promise<T>): Promise<T> {
  const left = join(dir, 'left');
  mkdirSync(left);
  for (const name of readdirSync(dir)) if (/\.db(-wal)?$/.test(name)) copyFileSync(join(dir, name), join(left, name));
  return use(left);
}

/** Streams that a killed process would leave. */
async function streamsLeft(dir: string): Promise<readonly string[]> {
  return afterKill(dir, async (left) => {
    const log = await openEmbeddedEventStore({ dir: left });
    try {
      const streams: string[] = [];
      for await (const { events } of log.readAll(undefined)) streams.push(...events.map(({ stream }) => stream));
      return streams;
    } finally {
      await log.close();
    }
  });
}

const refusedFor =
  (name: string) =>
  (error: unknown): void => {
    assert.instance(error, UnavailableError);
    const { publicReason } = error as UnavailableError;
    assert.is(
      publicReason,
      `${name} was removed or replaced under the service: writes are refused until it is started again`,
    );
  };

test("keeps acknowledged events when the log's WAL is removed, and refuses everything after", async ({ dir, log }) => {
  const acknowledged: string[] = [];
  for (let n = 0; n < 20; n++) {
    await log.append(`before-${n}`, [event()], 'none');
    acknowledged.push(`before-${n}`);
  }
  await log.ping();
  rmSync(join(dir, 'events.db-wal'));
  refusedFor('events.db-wal')(await failureOf(log.ping()));
  for (let n = 0; n < 20; n++) {
    const failure = await log.append(`after-${n}`, [event()], 'none').then(
      () => undefined,
      (error: unknown) => error,
    );
    if (failure === undefined) acknowledged.push(`after-${n}`);
    else refusedFor('events.db-wal')(failure);
  }
  refusedFor('events.db-wal')(await failureOf(log.append('late', [event()], 'none')));
  const left = await streamsLeft(dir);
  assert.equal(
    acknowledged.filter((stream) => !left.includes(stream)),
    [],
  );
  assert.ok(!left.includes('late'));
  assert.is((await log.read('before-0')).length, 1, 'reads go on');
});

test("saves the log's WAL within a moment when it is removed while nothing is written", async ({ dir, log }) => {
  await log.append('quiet', [event()], 'none');
  rmSync(join(dir, 'events.db-wal'));
  await eventually(async () => {
    rmSync(join(dir, 'left'), { recursive: true, force: true });
    return (await streamsLeft(dir).catch((): readonly string[] => [])).includes('quiet');
  });
});

for (const name of ['events.db', 'events.db-shm']) {
  test(`acknowledges nothing once ${name} was removed or replaced`, async ({ dir, log }) => {
    await log.append('before', [event()], 'none');
    const file = join(dir, name);
    renameSync(file, join(dir, 'aside'));
    refusedFor(name)(await failureOf(log.append('removed', [event()], 'none')));
    copyFileSync(join(dir, 'aside'), file);
    refusedFor(name)(await failureOf(log.append('replaced', [event()], 'none')));
    refusedFor(name)(await failureOf(log.ping()));
    rmSync(file);
    renameSync(join(dir, 'aside'), file);
    await log.append('put back', [event()], 'none');
    await log.ping();
  });
}

test('does not write over a WAL that another process has started', async ({ dir, log }) => {
  await log.append('before', [event()], 'none');
  rmSync(join(dir, 'events.db-wal'));
  writeFileSync(join(dir, 'events.db-wal'), 'of somebody else');
  refusedFor('events.db-wal')(await failureOf(log.append('after', [event()], 'none')));
});

for (const name of ['read.db', 'read.db-wal', 'read.db-shm']) {
  test(`refuses writes, and is not ready, once ${name} was removed`, async ({ dir, store }) => {
    const { records } = store;
    await records.put('key', { n: 1 });
    await store.ping();
    renameSync(join(dir, name), join(dir, 'aside'));
    refusedFor(name)(await failureOf(store.ping()));
    // The first is committed before it is looked, and brought into the file where only the WAL's name is gone.
    await records.put('key', { n: 2 }).catch(refusedFor(name));
    refusedFor(name)(await failureOf(records.put('key', { n: 3 })));
    refusedFor(name)(
      await failureOf(
        store.write([
          {
            collection: { name: 'things', version: 1, indexes: [] },
            documents: [],
            checkpoint: { projection: 'p', position: '1' },
          },
        ]),
      ),
    );
    assert.ok(!existsSync(join(dir, name)));
  });
}

test.run();
