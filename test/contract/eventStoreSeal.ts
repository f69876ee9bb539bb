import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type EventStore, LogSealedError } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import {
  event,
  events,
  eventsOf,
  failureOf,
  idsOf,
  newStream,
  readUntil,
} from '../support/engines/eventStoreEvents.js';

/** A log that is the test's own, since sealing is for ever. */
export interface SealFixture {
  readonly store: EventStore;
  /** The same log, opened once more while `store` is open, as another process would. */
  readonly other: EventStore;
  /** Closes and removes everything. */
  readonly destroy: () => Promise<void>;
}

/** The port's guarantees of sealing, as tests of one adapter. */
export function eventStoreSealContract(name: string, open: () => Promise<SealFixture>): void {
  const test = suite(`EventStore, sealed: ${name}`);
  for (const [promise, check] of Object.entries(PROMISES)) {
    test(promise, async () => {
      const fixture = await open();
      try {
        await check(fixture);
      } finally {
        await fixture.destroy();
      }
    });
  }
  test.run();
}

const PROMISES: Readonly<Record<string, (fixture: SealFixture) => Promise<void>>> = {
  async 'a sealed log refuses every append, of every process, and nothing else'({ store, other }) {
    const stream = newStream();
    const first = events(3);
    await store.append(stream, first, 'none');
    assert.equal([await store.sealed(), await other.sealed()], [false, false]);
    const following = readUntil(other.follow(undefined), (seen) => seen.length === 3);
    await store.seal();
    const end = await store.end();
    assert.equal([await store.sealed(), await other.sealed()], [true, true]);
    for (const one of [store, other]) {
      for (const [to, batch, expected] of [
        [stream, [event()], 2],
        [stream, [event()], 'any'],
        [newStream(), [event()], 'none'],
        [stream, [event()], 9],
        [stream, first, 'none'],
      ] as const) {
        const error = await failureOf(one.append(to, batch, expected));
        assert.instance(error, LogSealedError);
        assert.instance(error, UnavailableError);
        assert.is((error as LogSealedError).outcomeUnknown, false);
        assert.match((error as LogSealedError).message, /sealed.*EVENTSTORE_URL/);
      }
      assert.is(await one.end(), end);
      assert.equal(idsOf(await one.read(stream)), idsOf(first));
      assert.equal(idsOf(await eventsOf(one.readAll(undefined))), idsOf(first));
      await one.ping();
    }
    assert.equal(idsOf(await following), idsOf(first));
    await other.seal();
    assert.is(await store.sealed(), true, 'sealing again changes nothing');
  },

  async 'appends under way while it is sealed are stored or refused, and none is stored afterwards'({ store, other }) {
    const ids: string[] = [];
    const clients = Array.from({ length: 8 }, async (_, n) => {
      const stream = newStream();
      for (let revision = -1; ; revision++) {
        const one = event();
        try {
          await (n % 2 === 0 ? store : other).append(stream, [one], revision === -1 ? 'none' : revision);
        } catch (error) {
          assert.instance(error, LogSealedError);
          return;
        }
        ids.push(one.id);
      }
    });
    while (ids.length < 50) await new Promise(setImmediate);
    await store.seal();
    const end = await store.end();
    await Promise.all(clients);
    assert.is(await other.end(), end);
    assert.equal(idsOf(await eventsOf(store.readAll(undefined))).toSorted(), ids.toSorted());
  },

  async 'a log without events can be sealed'({ store, other }) {
    await other.seal();
    assert.is(await store.sealed(), true);
    assert.instance(await failureOf(store.append(newStream(), [event()], 'none')), LogSealedError);
    assert.is(await store.end(), undefined);
  },
};
