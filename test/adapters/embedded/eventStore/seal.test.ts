import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import { sealEventLog } from '../../../../src/adapters/embedded/eventStore/log.js';
import { LogSealedError } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { eventStoreSealContract } from '../../../contract/eventStoreSeal.js';
import { event, events, eventsOf, failureOf, idsOf, newStream } from '../../../support/engines/eventStoreEvents.js';
import { inFolder, newFolder } from '../../../support/engines/eventStoreFolder.js';
import { startEventStore } from '../../../support/engines/eventStoreProcess.js';

eventStoreSealContract('embedded', async () => {
  const { open, remove } = newFolder();
  return { store: await open(), other: await open(), destroy: remove };
});

const test = suite('Embedded event store: sealing and appending in order');

test('seals for processes that have the log open, and after everything was closed', () =>
  inFolder(async ({ dir, open }) => {
    const other = await startEventStore(dir);
    try {
      const store = await open();
      await other.append('a', [event()], 'none');
      await store.seal();
      const refused = (await failureOf(other.append('a', [event()], 0))) as Error;
      assert.match(refused.message, /is sealed/);
    } finally {
      await other.kill();
    }
    const again = await open();
    assert.is(await again.sealed(), true);
    assert.instance(await failureOf(again.append('b', [event()], 'none')), LogSealedError);
    assert.is((await eventsOf(again.readAll(undefined))).length, 1);
  }));

test('stays open when sealing fails; a closed store neither seals nor answers', () =>
  inFolder(async ({ dir, open }) => {
    const store = await open();
    await store.append('a', [event()], 'none');
    const database = new Sqlite(join(dir, 'events.db'));
    database.exec(`CREATE TRIGGER full BEFORE INSERT ON meta BEGIN SELECT raise(ABORT, 'no more'); END`);
    assert.throws(() => sealEventLog(join(dir, 'events.db')), /no more/);
    database.exec('DROP TRIGGER full');
    database.close();
    assert.is(await store.sealed(), false);
    await store.close();
    assert.instance(await failureOf(store.seal()), UnavailableError);
    assert.instance(await failureOf(store.sealed()), UnavailableError);
    assert.instance(await failureOf(store.appendInOrder!([])), UnavailableError);
  }));

test('appends in the order given, whatever the streams, and changes nothing when repeated', () =>
  inFolder(async ({ dir }) => {
    const store = await openEmbeddedEventStore({ dir });
    const streams = Array.from({ length: 40 }, () => newStream());
    const appends = Array.from({ length: 2_500 }, (_, n) => {
      const round = Math.floor(n / 40);
      return { stream: streams[n % 40]!, events: events(2), expected: round === 0 ? ('none' as const) : round * 2 - 1 };
    });
    await store.appendInOrder!(appends);
    await store.appendInOrder!(appends);
    assert.equal(
      idsOf(await eventsOf(store.readAll(undefined))),
      appends.flatMap((append) => idsOf(append.events)),
    );
    const large = Array.from({ length: 20 }, () => ({
      stream: newStream(),
      events: [event('Large', { text: 'x'.repeat(900_000) })],
      expected: 'none' as const,
    }));
    await store.appendInOrder!(large);
    assert.equal(
      idsOf(await eventsOf(store.readAll(undefined, { types: ['Large'] }))),
      large.flatMap((append) => idsOf(append.events)),
    );
    const conflict = (await failureOf(
      store.appendInOrder!([{ stream: streams[0]!, events: [event()], expected: 'none' }]),
    )) as Error;
    assert.is(conflict.name, 'ConflictError');
    await store.close();
  }));

test.run();
