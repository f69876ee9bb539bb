import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { MAX_BATCH_DOCUMENTS, type ReadStore, type WriteBatch } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { giftsProjection, type GiftDocument } from '../../../src/projections/gifts.js';
import { checkpointName, collectionOf, type Projection } from '../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { previousBuildOf } from '../../../src/runtime/readmodels/previousBuilds.js';
import { startProjector } from '../../../src/runtime/readmodels/projector.js';
import { listQuarantined } from '../../../src/runtime/readmodels/quarantine.js';
import { lostAnchor, type LogAnchor, LOG_ANCHOR, anchorOf } from '../../../src/runtime/log/logAnchor.js';
import { putRebuild, rebuildOf, REBUILDS } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import {
  append,
  buy,
  contents,
  installed,
  LEASE_TEST_MS,
  redeem,
  settled,
  silent,
} from '../../support/fixtures/projecting.js';
import { depsFor, inUse, rebuild } from '../../support/fixtures/rebuilding.js';
import { deferred } from '../../../src/lib/async/deferred.js';
import { within } from '../../../src/lib/async/within.js';
import { DEADLINE_MS, FOR_EVER_MS, until } from '../../support/assertions/until.js';

const GIFTS = collectionOf(giftsProjection);
const TRANSACTIONS = collectionOf(transactionsProjection);
/** The version of `gifts`. */
const V = giftsProjection.version;
const test = suite('projector');

/** The store with `write` replaced. */
const writing = (store: ReadStore, write: (batches: readonly WriteBatch[]) => Promise<void>): ReadStore => ({
  ...store,
  write,
});

/**
 * The store, by which the previous build of gifts is retained for a moment more until the test says that its day is
 * over.
 */
function retaining(store: ReadStore, day: { readonly isOver: boolean; asked: number }): ReadStore {
  const get = async <V>(key: string): ReturnType<typeof store.records.get<V>> => {
    const record = await store.records.get<V>(key);
    if (key !== 'previous/gifts' || record === undefined) return record;
    day.asked += 1;
    return { ...record, value: { ...record.value, until: Date.now() + (day.isOver ? -1 : 50) } };
  };
  return { ...store, records: { ...store.records, get } };
}

/** Gifts in another version, whose documents say so. */
function giftsVersion(version: number): Projection {
  const evolve = (body: object | undefined, ...rest: [never, never, never]): object => ({
    ...giftsProjection.evolve(body as GiftDocument | undefined, ...rest),
    shape: version,
  });
  return { ...giftsProjection, version, evolve: evolve as Projection['evolve'] };
}

async function stored(store: ReadStore, gift: string): Promise<GiftDocument | undefined> {
  return (await store.get<GiftDocument>(GIFTS, gift))?.body;
}

test(
  'ends where it is closed while it opens the builds',
  installed(async ({ store, project }) => {
    const opening = deferred<void>();
    const goOn = deferred<void>();
    const slow: ReadStore = {
      ...store,
      async ensure(...args) {
        opening.resolve();
        await goOn.promise;
        return store.ensure(...args);
      },
    };
    const last = { ...transactionsProjection, last: true as const };
    const projector = await project({ store: slow, projections: [giftsProjection, last] });
    await opening.promise;
    const closing = projector.close().then(() => 'closed');
    goOn.resolve();
    assert.is(await within(closing, 10_000, () => 'still open'), 'closed');
  }),
);

test(
  'an empty log is caught up with at once, and durably',
  installed(async ({ events, store, project }) => {
    const projector = await project();
    await settled(projector, events);
    assert.is(await store.active('gifts'), V);
    assert.equal(
      projector.kept(),
      [giftsProjection, transactionsProjection].map(({ name: projection, version }) => ({
        projection,
        version,
        position: undefined,
        caughtUp: true,
        active: true,
        quarantined: [],
      })),
    );
  }),
);

test(
  'fills a collection from the beginning that is found to be lost while its build runs',
  installed(async ({ events, store, project }) => {
    const {
      gifts: [gift = ''],
    } = await buy(events, [{ user_id: 'u2' }]);
    const before = await project();
    await settled(before, events);
    await before.close();
    let calls = 0;
    // As MongoDB does: a person drops the collection after the build was opened, and before it is at the log's end.
    const losing: ReadStore = {
      ...store,
      async ensure(collection, options) {
        if (collection.name === GIFTS.name && ++calls === 2) {
          await store.deactivate(GIFTS.name, V);
          await store.drop(GIFTS);
        }
        await store.ensure(collection, options);
      },
    };
    const projector = await project({ store: losing });
    await until(async () => calls >= 2, 'the loss');
    const { position } = await redeem(events, gift);
    assert.ok(await store.reached(`gifts@${V}`, position, DEADLINE_MS));
    await settled(projector, events);
    assert.is((await stored(store, gift))?.redemption?.redeemed, true, 'what was written before is there, too');
    assert.is(await store.active(GIFTS.name), V);
  }),
);

test(
  'an appended event is soon in the documents, and every checkpoint advances',
  installed(async ({ events, store, project }) => {
    const projector = await project();
    await settled(projector, events);
    const {
      gifts: [gift = ''],
      transaction,
    } = await buy(events, [{ user_id: 'u2' }]);
    const { position } = await redeem(events, gift);
    assert.ok(await store.reached(`gifts@${V}`, position, DEADLINE_MS));
    assert.is((await stored(store, gift))?.redemption?.redeemed, true);
    assert.ok(
      await store.reached(checkpointName(transactionsProjection), position, DEADLINE_MS),
      'transactions have nothing to do with it',
    );
    assert.is((await store.get<{ payment: string }>(TRANSACTIONS, transaction))?.body.payment, 'pending');
    const issued = await append(events, giftStream(gift), 'GiftIssued', {});
    assert.ok(await store.reached(`gifts@${V}`, issued.position, DEADLINE_MS), 'an event that nobody folds');
  }),
);

test(
  "the last folded event is stored as the log's anchor, which a log put back lacks",
  installed(async ({ events, store, project }) => {
    const projector = await project();
    await settled(projector, events);
    assert.is(await lostAnchor(store.records, events), undefined, 'no anchor yet');
    const {
      gifts: [gift = ''],
    } = await buy(events, [{ user_id: 'u2' }]);
    const { revision } = await redeem(events, gift);
    const anchor = async (): Promise<LogAnchor | undefined> => (await store.records.get<LogAnchor>(LOG_ANCHOR))?.value;
    await until(async () => (await anchor())?.stream === giftStream(gift), 'an anchor');
    assert.equal(await anchor(), anchorOf((await events.read(giftStream(gift), { from: revision })).at(-1)!));
    assert.is(await lostAnchor(store.records, events), undefined);
    assert.equal(await lostAnchor(store.records, { read: async () => [] }), await anchor());
    assert.equal(
      await lostAnchor(store.records, {
        read: async (stream, options) =>
          (await events.read(stream, options)).map((event) => ({ ...event, id: 'another' })),
      }),
      await anchor(),
    );
    let looks = 0;
    const behind: Pick<EventStore, 'read'> = {
      read: async (stream, options) => (++looks < 3 ? [] : events.read(stream, options)),
    };
    assert.is(await lostAnchor(store.records, behind), undefined, 'a node that is a little behind');
  }),
);

test(
  'another process sees the checkpoint',
  installed(async ({ events, project, openStore }) => {
    const elsewhere = await openStore();
    await project();
    const { position } = await buy(events);
    assert.ok(await elsewhere.reached(`gifts@${V}`, position, DEADLINE_MS));
  }),
);

test(
  '64 redemptions at once make few writes',
  installed(async ({ events, store, project }) => {
    let writes = 0;
    const counted = writing(store, async (batches) => {
      writes++;
      return store.write(batches);
    });
    const projector = await project({ store: counted });
    const bought = await buy(
      events,
      Array.from({ length: 64 }, () => ({})),
    );
    await settled(projector, events);
    writes = 0;
    await Promise.all(bought.gifts.map(async (gift) => redeem(events, gift)));
    await settled(projector, events);
    assert.ok(writes > 0 && writes < 10, `${writes} writes`);
    for (const gift of bought.gifts) assert.ok((await stored(store, gift))?.redemption);
  }),
);

test(
  'a purchase of 10,000 is stored in batches, its checkpoint last',
  installed(async ({ events, store, project }) => {
    const order: string[] = [];
    const watched = writing(store, async (batches) => {
      for (const { documents, checkpoint } of batches) {
        assert.ok(documents.length <= MAX_BATCH_DOCUMENTS);
        order.push(...documents.map(({ id }) => id));
        if (checkpoint?.projection === `gifts@${V}`) order.push(`at ${checkpoint.position}`);
      }
      return store.write(batches);
    });
    const projector = await project({ store: watched });
    const bought = await buy(
      events,
      Array.from({ length: 10_000 }, () => ({ user_id: 'u2' })),
    );
    await settled(projector, events);
    const mark = order.indexOf(`at ${bought.position}`);
    assert.equal(new Set(order.slice(0, mark).filter((entry) => !entry.startsWith('at '))).size, 10_000);
    assert.is(await store.count(GIFTS, {}), 10_000);
  }),
);

test(
  'a projector broken off in a write goes on from the checkpoint to the same documents',
  installed(async ({ events, store, project, openStore }) => {
    const bought = await buy(
      events,
      Array.from({ length: 2_500 }, () => ({})),
    );
    for (const gift of bought.gifts.slice(0, 20)) await redeem(events, gift);
    const elsewhere = await openStore();
    let broke = 0;
    // As a killed process leaves it: some documents, no checkpoint.
    const dying = writing(elsewhere, async ([first]) => {
      if (first !== undefined)
        await elsewhere.write([{ collection: first.collection, documents: first.documents.slice(0, 700) }]);
      broke++;
      throw new UnavailableError('killed');
    });
    const dead = await project({ store: dying });
    await until(() => broke > 0);
    assert.ok((await store.count(GIFTS, {})) >= 700);
    assert.is(await store.checkpoint(`gifts@${V}`), undefined);
    await dead.close();
    const projector = await project();
    await settled(projector, events);
    const documents = await contents(store, GIFTS);
    assert.is(documents.size, 2_500);
    assert.is([...documents.values()].filter(({ body }) => 'redemption' in body).length, 20);
  }),
);

test(
  'more documents than memory should hold are stored on the way, and read again in parts',
  installed(async ({ events, store, project }) => {
    const bought = [];
    for (let at = 0; at < 4; at++)
      bought.push(
        await buy(
          events,
          Array.from({ length: 10_000 }, () => ({})),
        ),
      );
    const first = await project();
    await settled(first, events);
    await first.close();
    assert.is(await store.count(GIFTS, {}), 40_000);
    const touched = bought.flatMap(({ gifts: ids }) => ids.slice(0, 600));
    await Promise.all(touched.map(async (gift) => redeem(events, gift)));
    const second = await project();
    await settled(second, events);
    const documents = await store.getMany<GiftDocument>(GIFTS, touched);
    assert.ok(documents.every((document) => document?.body.redemption?.redeemed === true));
  }),
);

test(
  'a projector starts over where memory is full and the store fails',
  installed(async ({ events, store, project }) => {
    for (let at = 0; at < 4; at++)
      await buy(
        events,
        Array.from({ length: 10_000 }, () => ({})),
      );
    let failures = 2;
    const flaky = writing(store, async (batches) => {
      if (failures-- > 0) throw new UnavailableError('full');
      return store.write(batches);
    });
    await settled(await project({ store: flaky }), events);
    assert.is(await store.count(GIFTS, {}), 40_000);
  }),
);

test(
  'a failing store is waited for',
  installed(async ({ events, store, project }) => {
    let failing = true;
    const flaky = (call: () => Promise<never>): Promise<never> =>
      failing ? Promise.reject(new UnavailableError('down')) : call();
    const projector = await project({
      store: {
        ...store,
        write: (batches) => flaky(() => store.write(batches) as Promise<never>),
        boundTo: (log) => flaky(() => store.boundTo(log) as Promise<never>),
      },
    });
    const {
      gifts: [gift = ''],
    } = await buy(events);
    await sleep(150);
    assert.is(await stored(store, gift), undefined);
    failing = false;
    await settled(projector, events);
    assert.ok(await stored(store, gift));
    failing = true;
    const second = await buy(events);
    await sleep(250);
    failing = false;
    await store.reached(`gifts@${V}`, second.position, DEADLINE_MS);
    assert.ok(await stored(store, second.gifts[0] ?? ''));
  }),
);

test(
  'a failing build is tried less and less often while others do well',
  installed(async ({ events, store, project }) => {
    const flaky = writing(store, async (batches) => {
      const others = batches.filter(({ collection }) => collection.name !== GIFTS.name);
      await store.write(others);
      if (others.length < batches.length) throw new UnavailableError('full');
    });
    const waits: number[] = [];
    const logger = pino(
      { level: 'warn' },
      { write: (line: string) => void waits.push((JSON.parse(line) as { restartMs: number }).restartMs) },
    );
    await project({ store: flaky, logger });
    await buy(events);
    await until(() => waits.length === 4);
    for (const [at, most] of [100, 200, 400, 800].entries())
      assert.ok(waits[at]! >= most / 2 && waits[at]! <= most, `${waits.join()}`);
  }),
);

test(
  'a failing read is tried again, and so is an unexpected error',
  installed(async ({ events, store, project }) => {
    const bought = await buy(events, [{}, {}]);
    for (const gift of bought.gifts) await redeem(events, gift);
    const first = await project();
    await settled(first, events);
    await first.close();
    for (const gift of bought.gifts)
      await append(events, giftStream(gift), 'GiftUnredeemed', { redemption_id: `r-${gift}` });
    let errors: unknown[] = [new UnavailableError('down'), new TypeError('surprise')];
    const getMany: ReadStore['getMany'] = async (...args) => {
      const error = errors.shift();
      if (error !== undefined) throw error;
      return store.getMany(...args);
    };
    const second = await project({ store: { ...store, getMany } });
    await settled(second, events);
    for (const gift of bought.gifts) assert.is((await stored(store, gift))?.redemption?.redeemed, false);
    errors = [new UnavailableError('down')];
    const third = await buy(events);
    assert.ok(await store.reached(`gifts@${V}`, third.position, DEADLINE_MS));
  }),
);

test(
  'a failing log is waited for',
  installed(async ({ events, store, project }) => {
    let failures = 2;
    const flaky: EventStore = {
      ...events,
      end: async () => (failures-- > 0 ? Promise.reject(new UnavailableError('down')) : events.end()),
    };
    const projector = await project({ events: flaky });
    const {
      gifts: [gift = ''],
    } = await buy(events);
    await settled(projector, events);
    assert.ok(await stored(store, gift));
  }),
);

test(
  'a standby takes over from a silent leader, whose late write changes nothing',
  installed(async ({ events, store, project, openStore }) => {
    const first = await openStore();
    const late: (() => Promise<void>)[] = [];
    let silentNow = false;
    const never = new Promise<never>(() => undefined);
    const freezing: ReadStore = {
      ...first,
      records: { ...first.records, put: (...args) => (silentNow ? never : first.records.put(...args)) },
      write: async (batches) => {
        if (!silentNow) return first.write(batches);
        late.push(() => first.write(batches));
        throw new UnavailableError('no answer', { outcomeUnknown: true });
      },
    };
    const previous = await startProjector({
      events,
      store: freezing,
      projections: [giftsProjection, transactionsProjection],
      logger: silent,
      holder: 'previous',
      leaseMs: LEASE_TEST_MS,
    });
    const {
      gifts: [gift = ''],
    } = await buy(events);
    await settled(previous, events);
    const standby = await project();
    assert.equal(standby.kept(), []);
    silentNow = true;
    await redeem(events, gift);
    await until(() => late.length > 0, 'the late write');
    await until(() => standby.kept().length > 0, 'the other to take over');
    await append(events, giftStream(gift), 'GiftUnredeemed', { redemption_id: `r-${gift}` });
    await settled(standby, events);
    const before = await store.get(GIFTS, gift);
    const checkpoint = await store.checkpoint(`gifts@${V}`);
    for (const write of late) await write();
    assert.equal(await store.get(GIFTS, gift), before);
    assert.is((await stored(store, gift))?.redemption?.redeemed, false);
    assert.is(await store.checkpoint(`gifts@${V}`), checkpoint);
    await until(() => previous.kept().length === 0, 'it to know that it leads no more');
    // Its store never answers, so closing never ends.
    void previous.close();
  }),
);

test(
  'a process that has lost the lease writes nothing',
  installed(async ({ events, store, project }) => {
    let writes = 0;
    const watched = writing(store, async (batches) => {
      writes++;
      return store.write(batches);
    });
    const projector = await project({ store: watched, leaseMs: 100 });
    await settled(projector, events);
    // Another process takes the record, and keeps it.
    const keeping = setInterval(() => {
      void store.records.put('lease/projector', { holder: 'thief', fence: 1_000 });
    }, 20);
    await until(() => projector.kept().length === 0, 'the loss');
    writes = 0;
    await buy(events);
    await sleep(150);
    assert.is(writes, 0);
    clearInterval(keeping);
    await settled(projector, events);
    assert.ok(writes > 0, 'it leads again');
  }),
);

test(
  'a lease that runs out during its renewal and is acquired again is no error',
  installed(async ({ events, store, project }) => {
    const told: { readonly level: number; readonly msg: string }[] = [];
    const logger = pino(
      { level: 'warn' },
      { write: (line: string) => void told.push(JSON.parse(line) as { level: number; msg: string }) },
    );
    const leaseMs = 1_000;
    let late = false;
    // Of every 600 ms the lease is not held for 200.
    const records: ReadStore['records'] = {
      ...store.records,
      async put(key, ...rest) {
        const version = await store.records.put(key, ...rest);
        if (late && key === 'lease/projector') await sleep(leaseMs * 0.6);
        return version;
      },
    };
    // Ending a turn takes until the lease is held again.
    const slowToEnd: EventStore = {
      ...events,
      async *follow(...args) {
        try {
          yield* events.follow(...args);
        } finally {
          if (late) await sleep(leaseMs * 0.3);
        }
      },
    };
    const projector = await project({ events: slowToEnd, store: { ...store, records }, logger, leaseMs });
    await settled(projector, events);
    late = true;
    const lost = (): boolean => told.some(({ msg }) => msg === 'lease lost');
    while (!lost()) {
      await buy(events);
      await sleep(25);
    }
    late = false;
    await settled(projector, events);
    assert.equal(
      told.filter(({ level }) => level > 40),
      [],
    );
  }),
);

test(
  'a document that can not be folded is quarantined alone',
  installed(async ({ events, store, project }) => {
    const projector = await project();
    const good = await buy(events);
    await redeem(events, 'feedfeedfeedfeedfeed');
    await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u3' });
    await redeem(events, good.gifts[0] ?? '');
    await settled(projector, events);
    const model = openReadModel<GiftDocument>(store, giftsProjection);
    assert.ok((await model.get(good.gifts[0] ?? ''))?.redemption);
    const refused = await model.get('feedfeedfeedfeedfeed').catch((error: unknown) => error);
    assert.instance(refused, UnavailableError);
    assert.instance(
      await model.getMany([good.gifts[0] ?? '', 'feedfeedfeedfeedfeed']).catch((error: unknown) => error),
      UnavailableError,
    );
    assert.equal(
      (await model.find({})).map(({ id }) => id),
      good.gifts,
    );
    const [listed, ...others] = projector.kept()[0]?.quarantined ?? [];
    assert.is(others.length, 0, 'once, although a later event came');
    assert.is(listed?.documentId, 'feedfeedfeedfeedfeed');
    assert.is(listed?.type, 'GiftRedeemed');
    assert.match(listed?.cause ?? '', /never bought/);
    await projector.close();
    const again = await project();
    await settled(again, events);
    assert.equal(again.kept()[0]?.quarantined, [listed], 'still listed');
    assert.equal(await listQuarantined(store.records, giftsProjection), [listed], 'for other processes too');
  }),
);

test(
  'an event that can not tell its documents is listed, and passed over',
  installed(async ({ events, store, project }) => {
    const projector = await project();
    await append(events, transactionStream('t9'), 'GiftsPurchased', { transaction_id: 't9' });
    const good = await buy(events);
    await settled(projector, events);
    const [listed] = projector.kept()[0]?.quarantined ?? [];
    assert.is(listed?.documentId, undefined);
    assert.is(listed?.stream, 'transaction-t9');
    assert.ok(await stored(store, good.gifts[0] ?? ''));
  }),
);

test(
  'a fold may throw what is no Error',
  installed(async ({ events, project }) => {
    const throwing: Projection = {
      ...transactionsProjection,
      evolve() {
        throw 'plain words' as unknown;
      },
    };
    const projector = await project({ projections: [throwing] });
    await buy(events);
    await settled(projector, events);
    assert.is(projector.kept()[0]?.quarantined[0]?.cause, 'plain words');
  }),
);

test(
  'a new version is built beside the old one and swapped in while it is read',
  installed(async ({ events, store, project }) => {
    const bought = await buy(
      events,
      Array.from({ length: 3_000 }, () => ({})),
    );
    const old = await project();
    await settled(old, events);
    const model = openReadModel<GiftDocument & { shape?: number }>(store, giftsProjection);
    let reading = true;
    const shapes = new Set<number | undefined>();
    const reads = (async () => {
      for (let at = 0; reading; at = (at + 7) % bought.gifts.length) {
        const body = await model.get(bought.gifts[at] ?? '');
        assert.ok(body, 'never missing');
        shapes.add(body?.shape);
        if (at % 5 === 0) await sleep(1);
      }
    })();
    await old.close();
    const day = { isOver: false, asked: 0 };
    const projections = [giftsVersion(V + 1), transactionsProjection];
    const next = await project({ store: retaining(store, day), projections, retireMs: 1_500 });
    await settled(next, events);
    assert.is(await store.active('gifts'), V + 1);
    assert.is(await store.count(GIFTS, {}), 3_000, 'the old one is still there for those who read it');
    assert.is((await previousBuildOf(store, 'gifts'))?.number, V, 'and for the release that made it');
    day.isOver = true;
    await until(async () => (await store.count(GIFTS, {})) === 0, 'the old one to be dropped in the end');
    const after = await buy(events);
    await until(() => model.reached(after.position, 100), 'the model to show it');
    assert.is((await model.get(after.gifts[0] ?? ''))?.shape, V + 1);
    reading = false;
    await reads;
    assert.equal([...shapes], [undefined, V + 1]);
  }),
);

test(
  'a previous fold keeps its build up to date, so that its release comes back without a gap',
  installed(async ({ events, store, project }) => {
    const bought = await buy(events, [{}, {}, {}]);
    const old = await project();
    await settled(old, events);
    await old.close();
    let release: (() => void) | undefined;
    const built = new Promise<void>((resolve) => (release = resolve));
    const slowly = writing(store, async (batches) => {
      if (batches.some(({ collection }) => collection.version === V + 1)) await built;
      return store.write(batches);
    });
    const release2 = [{ ...giftsVersion(V + 1), previous: [giftsProjection] }];
    const both = await project({ store: slowly, projections: release2, retireMs: 0 });
    const { position } = await redeem(events, bought.gifts[0] ?? '');
    assert.ok(await store.reached(`gifts@${V}`, position, DEADLINE_MS));
    assert.is(await store.active('gifts'), V);
    release?.();
    await until(async () => (await store.active('gifts')) === V + 1);
    await settled(both, events);
    const second = await redeem(events, bought.gifts[1] ?? '');
    assert.ok(
      await store.reached(`gifts@${V}`, second.position, DEADLINE_MS),
      'kept up to date though nobody reads it',
    );
    await both.close();
    const third = await redeem(events, bought.gifts[2] ?? '');
    const later = await project({ projections: release2, retireMs: 0 });
    await settled(later, events);
    assert.equal(
      later.kept().map(({ version, active, position: at }) => [version, active, at]),
      [
        [V + 1, true, third.position],
        [V, false, third.position],
      ],
    );
    await later.close();
    const back = await project({ projections: [giftsProjection], retireMs: 0 });
    await settled(back, events);
    assert.is(await store.active('gifts'), V);
    assert.is((await previousBuildOf(store, 'gifts'))?.number, V + 1);
    await back.close();
    await settled(await project({ projections: release2, retireMs: 0 }), events);
    assert.is(await store.active('gifts'), V + 1);
  }),
);

test(
  'a rebuild soon after a deployment does not take the way back to the previous release',
  installed(async ({ events, store, project }) => {
    const bought = await buy(events, [{}, {}]);
    const old = await project();
    await settled(old, events);
    await old.close();
    const next: Projection = { ...giftsVersion(V + 1), previous: [giftsProjection] };
    const leader = await project({ projections: [next], retireMs: 0 });
    await until(async () => (await store.active('gifts')) === V + 1, 'the new one to be in use');
    const { target } = await rebuild(depsFor(events, store), { projection: next });
    await inUse(store, target);
    const first = await redeem(events, bought.gifts[0] ?? '');
    assert.ok(await store.reached(`gifts@${V}`, first.position, DEADLINE_MS));
    await leader.close();
    const again = await project({ projections: [next], retireMs: 0 });
    await settled(again, events);
    const second = await redeem(events, bought.gifts[1] ?? '');
    assert.ok(
      await store.reached(`gifts@${V}`, second.position, DEADLINE_MS),
      'kept up to date, also by who leads next',
    );
    assert.equal(
      (await store.versions('gifts')).sort((a, b) => a - b),
      [V, V + 1, target],
    );
    await again.close();
    await settled(await project({ projections: [giftsProjection], retireMs: 0 }), events);
    assert.is(await store.active('gifts'), V);
  }),
);

test(
  'what another release has left is aborted, and nothing that was requested in its place in this moment',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project();
    await settled(first, events);
    await first.close();
    const left = { from: V, kind: 'rebuild', state: 'building', by: 'sue', at: '2026-05-04T00:00:00.000Z' } as const;
    const target = V * 1_000_000 + 7;
    let lists = 0;
    const list: typeof store.records.list = async (prefix, limit) => {
      const found = await store.records.list<never>(prefix, limit);
      if (prefix === REBUILDS && found.length > 0 && lists++ === 0) {
        const { key, version } = (await rebuildOf(store, 'gifts'))!;
        await store.records.delete(key, version);
        await putRebuild(store, 'gifts', { ...left, target }, 0);
      }
      return found;
    };
    await putRebuild(store, 'gifts', { ...left, target: (V + 1) * 1_000_000 + 1 }, 0);
    await project({ store: { ...store, records: { ...store.records, list } } });
    await until(() => lists > 1, 'the next poll');
    assert.equal((await rebuildOf(store, 'gifts'))?.value, { ...left, target });
  }),
);

test(
  "a previous release's build is dropped when its day is over, and run no more",
  installed(async ({ events, store, project }) => {
    await buy(events);
    const old = await project({ projections: [giftsProjection] });
    await settled(old, events);
    await old.close();
    const release2 = [{ ...giftsVersion(V + 1), previous: [giftsProjection] }];
    const day = { isOver: false, asked: 0 };
    const next = await project({ store: retaining(store, day), projections: release2, retireMs: 100 });
    await until(async () => (await store.active('gifts')) === V + 1, 'the new one to be in use');
    const { asked } = day;
    await until(() => day.asked > asked + 3, 'its day to be looked at');
    assert.equal([next.kept().length, await store.versions('gifts')], [2, [V, V + 1]]);
    day.isOver = true;
    await until(
      async () => next.kept().length === 1 && (await store.versions('gifts')).length === 1,
      'the old one to be dropped',
    );
    await next.close();
    const again = await project({ projections: release2 });
    await settled(again, events);
    assert.equal(
      again.kept().map(({ version }) => version),
      [V + 1],
    );
  }),
);

test(
  'on an empty store nothing is built of previous versions',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const first = await project({ projections: [{ ...giftsVersion(V + 1), previous: [giftsProjection] }] });
    await settled(first, events);
    assert.equal([first.kept().map(({ version }) => version), await store.versions('gifts')], [[V + 1], [V + 1]]);
  }),
);

test(
  'code of an earlier version takes its own into use again',
  installed(async ({ events, store, project }) => {
    await buy(events);
    const newer = await project({ projections: [giftsVersion(V + 1)] });
    await settled(newer, events);
    await newer.close();
    await settled(await project({ projections: [giftsProjection] }), events);
    assert.is(await store.active('gifts'), V);
  }),
);

test(
  'an old version that can not be dropped yet disturbs nothing else',
  installed(async ({ events, store, project }) => {
    await buy(events);
    for (const version of [V, V + 1]) await store.ensure({ ...GIFTS, version });
    let requested = 0;
    const drop = async (): Promise<void> => {
      requested++;
      throw new UnavailableError('busy');
    };
    const projector = await project({ store: { ...store, drop }, projections: [giftsVersion(V + 2)], retireMs: 0 });
    await until(() => requested >= 2);
    const { position } = await buy(events);
    assert.ok(await store.reached(`gifts@${V + 2}`, position, DEADLINE_MS));
    assert.ok(projector.kept()[0]?.caughtUp);
  }),
);

test(
  'a projection that is added catches up by itself, then joins the others',
  installed(async ({ events, store, project }) => {
    await buy(events, [{}, {}]);
    const first = await project({ projections: [giftsProjection] });
    await settled(first, events);
    await first.close();
    let feeds = 0;
    const follow: EventStore['follow'] = (...args) => {
      feeds++;
      return events.follow(...args);
    };
    const both = await project({ events: { ...events, follow } });
    await settled(both, events);
    await until(() => feeds === 3, 'one feed of both');
    const { position } = await buy(events);
    assert.ok(await store.reached(checkpointName(transactionsProjection), position, DEADLINE_MS));
    assert.ok(await store.reached(`gifts@${V}`, position, DEADLINE_MS));
    assert.is(await store.count(TRANSACTIONS, {}), 2);
  }),
);

test(
  'a read store filled from another log is refused',
  installed(async ({ events, store, project }) => {
    await store.boundTo('another log');
    const refused = await project().catch((error: unknown) => error);
    assert.match(String(refused), new RegExp(`another log, not from ${events.logId}`));
  }),
);

test(
  'closing stores what is folded, gives the lease up and ends all writing',
  installed(async ({ events, store, project }) => {
    const first = await project({ leaseMs: FOR_EVER_MS });
    await settled(first, events);
    await first.close();
    await first.close();
    assert.equal(first.kept(), []);
    const { position } = await buy(events);
    await sleep(50);
    assert.not(await store.reached(`gifts@${V}`, position, 20));
    // Without waiting for the lease to run out.
    const second = await project({ leaseMs: FOR_EVER_MS });
    await settled(second, events);
  }),
);

test(
  'a projector that is closed before it ever led writes nothing',
  installed(async ({ events, store, project, openStore }) => {
    await settled(await project(), events);
    const other = await openStore();
    const waiting = await project({ store: other });
    await waiting.close();
    assert.is(await store.active('gifts'), V);
  }),
);

test.run();
