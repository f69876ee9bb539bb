import { mkdtempSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { Sqlite } from '../../../../src/adapters/embedded/driver.js';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../../src/adapters/embedded/readStore/readStore.js';
import { giftStream } from '../../../../src/domain/gift/events.js';
import type { ReadStore, StoredDocument } from '../../../../src/ports/readStore.js';
import { AlteredEventError, UnavailableError } from '../../../../src/ports/unavailable.js';
import { accountsProjection } from '../../../../src/projections/accounts.js';
import { giftsProjection, type GiftDocument } from '../../../../src/projections/gifts.js';
import { collectionOf, type Projection } from '../../../../src/runtime/readmodels/projection.js';
import { openReadModel } from '../../../../src/runtime/readmodels/readModel.js';
import type { Difference } from '../../../../src/runtime/readmodels/maintenance/differences.js';
import {
  forgetFindings,
  lastFindings,
  startFindings,
} from '../../../../src/runtime/readmodels/maintenance/verification.js';
import { MaintenanceRefusedError } from '../../../../src/runtime/readmodels/maintenance/orders.js';
import { MAX_REPAIRS, repair } from '../../../../src/runtime/readmodels/maintenance/repair.js';
import {
  carryOut,
  openOrders,
  placeOrder,
  type RepairOrder,
  REPAIRS,
} from '../../../../src/runtime/readmodels/maintenance/repairOrders.js';
import {
  verifyAll,
  VerifyInterruptedError,
  type VerifyOptions,
  verifySample,
} from '../../../../src/runtime/readmodels/maintenance/verify.js';
import { editionOf } from '../../../../src/runtime/readmodels/edition.js';
import { asBuild, numberOf } from '../../../../src/runtime/readmodels/buildNumbers.js';
import { listQuarantined } from '../../../../src/runtime/readmodels/quarantine.js';
import { openBuild, type RunningBuild } from '../../../../src/runtime/readmodels/runningBuild.js';
import { LeaseLostError } from '../../../../src/runtime/readmodels/writer.js';
import {
  append,
  buy,
  installed,
  newEvent,
  redeem,
  settled,
  type Installation,
} from '../../../support/fixtures/projecting.js';
import { depsFor, GIFTS_PROJECTION, inUse, led, rebuild, unwatched } from '../../../support/fixtures/rebuilding.js';
import { DEADLINE_MS, eventually, until } from '../../../support/assertions/until.js';

const test = suite('verification and repair');
const GIFTS = collectionOf(giftsProjection);
const stopped = AbortSignal.abort();

interface Found {
  readonly differences: readonly Difference[];
  readonly report: Awaited<ReturnType<typeof verifyAll>>;
}

async function verify(
  installation: Installation,
  how: { sample?: number } & Partial<VerifyOptions> = {},
): Promise<Found> {
  const differences: Difference[] = [];
  const { sample, ...more } = how;
  const options: VerifyOptions = {
    events: installation.events,
    store: installation.store,
    projection: GIFTS_PROJECTION,
    ...unwatched(),
    onDifference: (one) => void differences.push(one),
    ...more,
  };
  if (sample !== undefined) return { report: await verifySample({ ...options, count: sample }), differences };
  const scratch = await openEmbeddedReadStore({ dir: mkdtempSync(join(installation.dir, 'scratch-')) });
  try {
    return { report: await verifyAll({ ...options, scratch }), differences };
  } finally {
    await scratch.close();
  }
}

/** Changes what is served, as no code of this service does. */
async function falsify(
  { store }: Installation,
  id: string,
  change: (body: GiftDocument) => object,
  position?: string,
): Promise<void> {
  const before = (await store.get<GiftDocument>(GIFTS, id)) as StoredDocument<GiftDocument>;
  assert.equal(
    await store.correct(GIFTS, [
      {
        id,
        expected: before.position,
        document: { id, position: position ?? before.position, body: change(before.body) },
      },
    ]),
    [true],
  );
}

async function outcomes(installation: Installation, ids: readonly string[]): Promise<(string | undefined)[]> {
  const deps = depsFor(installation.events, installation.store, 'repairer');
  const made = await led(deps, async () => repair(deps, GIFTS_PROJECTION, ids, unwatched()));
  return (made ?? []).map(({ outcome }) => outcome);
}

async function refusal(work: Promise<unknown>): Promise<string> {
  const error = await work.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.instance(error, MaintenanceRefusedError);
  return (error as Error).message;
}

test(
  'a verification finds no difference while documents are written',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const bought = await buy(
      events,
      Array.from({ length: 1_500 }, () => ({})),
    );
    const few = await buy(events, [{}, {}]);
    await settled(await project(), events);
    let writing = true;
    const writes = (async () => {
      for (let n = 0; writing; n++) {
        await append(events, giftStream(bought.gifts[n % 40] ?? ''), 'GiftClaimed', { user_id: `u${n}` });
        if (n % 10 === 0) await buy(events);
      }
    })();
    const whole = await verify(installation);
    const sample = await verify(installation, { sample: 300 });
    writing = false;
    await writes;
    assert.equal(
      [whole.differences, whole.report.differences, whole.report.unsettled, whole.report.behind],
      [[], 0, 0, false],
    );
    assert.ok(whole.report.documents >= 1_502);
    assert.equal([sample.differences, sample.report.documents, sample.report.behind], [[], 300, false]);
    assert.ok(await store.get(GIFTS, few.gifts[0] ?? ''));
  }),
);

test(
  'a verification that is withdrawn while it compares stops before it has compared everything',
  installed(async (installation) => {
    const { events, project } = installation;
    await buy(
      events,
      Array.from({ length: 3_000 }, () => ({})),
    );
    await settled(await project(), events);
    const withdrawn = new AbortController();
    const report: VerifyOptions['report'] = (_progress, { step }) => {
      if (step === 'compare') setImmediate(() => withdrawn.abort());
    };
    const error = await verify(installation, { signal: withdrawn.signal, report }).catch((thrown: unknown) => thrown);
    assert.instance(error, VerifyInterruptedError);
  }),
);

test(
  'a document that moves on is compared with the log up to its position',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const [gift = ''] = (await buy(events)).gifts;
    await settled(await project(), events);
    const movesOn = async (user_id: string): Promise<void> => {
      const { position } = await append(events, giftStream(gift), 'GiftClaimed', { user_id });
      assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS));
    };
    const moving: ReadStore = {
      ...store,
      find: async (...requested) => movesOn('once the log was folded').then(() => store.find(...requested)) as never,
      getMany: async (...requested) =>
        movesOn('once it was folded again').then(() => store.getMany(...requested)) as never,
    };
    const { differences, report } = await verify(installation, { store: moving });
    assert.equal([differences, report.documents, report.unsettled, report.behind], [[], 1, 0, false]);
  }),
);

test(
  'falsified documents are found field by field, and repaired',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const bought = await buy(
      events,
      Array.from({ length: 30 }, () => ({})),
    );
    const [one = '', two = '', three = '', four = '', five = '', six = ''] = bought.gifts;
    for (const gift of [one, two, three]) await redeem(events, gift);
    await settled(await project(), events);
    const before = await store.getMany(GIFTS, [one, two, three, four, five, six]);
    await falsify(installation, one, (body) => ({ ...body, redemption: { ...body.redemption, redeemed: false } }));
    await falsify(installation, two, (body) => body, '9999999999999999');
    await falsify(installation, three, (body) => ({ ...body, extra: true }), '0000000000000000');
    const [removed] = await store.getMany(GIFTS, [four]);
    await store.correct(GIFTS, [{ id: four, expected: removed?.position, document: undefined }]);
    await store.correct(GIFTS, [
      { id: 'ffff', expected: undefined, document: { id: 'ffff', position: '0000000000000001', body: { index: 1 } } },
    ]);
    const { differences, report } = await verify(installation);
    const kinds = new Map(differences.map(({ id, kind, fields }) => [id, [kind, ...fields.map(({ field }) => field)]]));
    assert.equal(kinds.get(one), ['different', 'redemption.redeemed']);
    assert.equal(kinds.get(two), ['different', '(position)']);
    assert.equal(kinds.get(three), ['different', '(position)', 'extra']);
    assert.equal(
      [kinds.get(four), kinds.get('ffff'), kinds.size, report.differences, report.documents],
      [['missing'], ['extra'], 5, 5, 31],
    );
    assert.is(
      (await verify(installation, { sample: 31 })).report.differences,
      4,
      'a sample finds what is served wrongly',
    );
    const model = openReadModel<GiftDocument>(store, giftsProjection);
    const edition = model.edition();
    assert.equal(await outcomes(installation, [one, two, three, four, 'ffff', five, one]), [
      'repaired',
      'repaired',
      'repaired',
      'repaired',
      'removed',
      'same',
    ]);
    assert.equal(await store.records.list('repair/'), [], 'no order is left');
    assert.equal(await store.getMany(GIFTS, [one, two, three, four, five, six]), before);
    assert.is((await verify(installation)).report.differences, 0);
    await until(async () => {
      await model.get(five);
      return model.edition() !== edition;
    }, 'caches to hear of it');
    const { position } = await append(events, giftStream(one), 'GiftUnredeemed', { redemption_id: `r-${one}` });
    assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS));
    assert.is(
      (await store.get<GiftDocument>(GIFTS, one))?.body.redemption?.redeemed,
      false,
      'the projector folds on what was repaired, not on what it remembered',
    );
  }),
);

test(
  'finds and repairs a document that lists lack, though it is what the log says',
  installed(async (installation) => {
    const { dir, events, store, project } = installation;
    const {
      gifts: [lost = '', other = ''],
    } = await buy(events, [{}, {}]);
    for (const gift of [lost, other]) await append(events, giftStream(gift), 'GiftClaimed', { user_id: 'ben' });
    await settled(await project(), events);
    const held = async (): Promise<string[]> =>
      (await store.find(GIFTS, { where: { held: { gt: '' } } })).map(({ id }) => id);
    assert.equal((await held()).toSorted(), [lost, other].toSorted());
    const file = new Sqlite(join(dir, 'read.db'));
    file.prepare(`UPDATE doc_gifts_${giftsProjection.version} SET "f:held" = NULL WHERE id = ?`).run(lost);
    file.close();
    // Reads of one turn share a snapshot.
    await nextTurn();
    assert.equal(await held(), [other]);
    for (const how of [{}, { sample: 2 }]) {
      const { differences, report } = await verify(installation, how);
      assert.equal(
        differences.map(({ id, kind, fields }) => [id, kind, fields.map(({ field }) => field)]),
        [[lost, 'different', ['(lists)']]],
      );
      assert.is(report.differences, 1);
    }
    assert.equal(await outcomes(installation, [lost, other]), ['repaired', 'same']);
    assert.equal((await held()).toSorted(), [lost, other].toSorted());
    assert.equal((await verify(installation)).differences, []);
  }),
);

test(
  'a verification ends with the cause where an event can not be read any more',
  installed(async (installation) => {
    await settled(await installation.project(), installation.events);
    await buy(installation.events, [{}]);
    const database = new Sqlite(join(installation.dir, 'events.db'));
    database.exec(`UPDATE events SET data = '{'`);
    database.close();
    const late = AbortSignal.timeout(DEADLINE_MS);
    // This one remembers no append.
    const events = await openEmbeddedEventStore({ dir: installation.dir });
    const error = await verify(installation, { events, signal: late }).catch((thrown: unknown) => thrown);
    await events.close();
    assert.instance(error, AlteredEventError);
    assert.match((error as Error).message, /at position 0{15}\d /);
  }),
);

test(
  'a repair loses nothing while documents are written',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const bought = await buy(
      events,
      Array.from({ length: 40 }, () => ({})),
    );
    await settled(await project(), events);
    const gift = bought.gifts[0] ?? '';
    let claims = 0;
    let writing = true;
    const writes = (async () => {
      while (writing) await append(events, giftStream(gift), 'GiftClaimed', { user_id: `u${++claims}` });
    })();
    for (let round = 0; round < 3; round++) assert.equal((await outcomes(installation, bought.gifts)).length, 40);
    writing = false;
    await writes;
    const { position } = await redeem(events, gift);
    assert.ok(await store.reached(`gifts@${giftsProjection.version}`, position, DEADLINE_MS));
    assert.is((await store.get<GiftDocument>(GIFTS, gift))?.body.claimed_by, `u${claims}`);
    assert.is((await verify(installation)).report.differences, 0);
  }),
);

test(
  'a repair hands over nothing of a person who was erased while it read the log',
  installed(async ({ events, store, project }) => {
    const projection = accountsProjection as unknown as Projection;
    const user = { id: 'ada', username: 'ada', name: 'Ada Lovelace', phone_number: null, device_tokens: [] };
    await append(events, 'user-ada', 'UserAdded', { ...user, password_hash: 'p', roles: [], merchant_id: null });
    await settled(await project({ projections: [projection] }), events);
    const handedOver: string[] = [];
    const put: typeof store.records.put = async (key, value, options) => {
      if (key.startsWith(REPAIRS)) handedOver.push(JSON.stringify(value));
      return store.records.put(key, value, options);
    };
    let erased = false;
    const readAll: typeof events.readAll = async function* (...args) {
      for await (const batch of events.readAll(...args)) {
        if (!erased) await append(events, 'user-ada', 'PersonErased', { erasure_id: 'e', purchases: 0, reason: '' });
        erased = true;
        yield batch;
      }
    };
    const deps = depsFor({ ...events, readAll }, { ...store, records: { ...store.records, put } });
    const made = await repair(deps, projection, ['user-ada'], unwatched());
    assert.equal(made, [{ id: 'user-ada', outcome: 'same' }]);
    assert.is(handedOver.length, 1);
    assert.not.match(handedOver[0] ?? '', 'Ada Lovelace');
  }),
);

test(
  'a quarantined document is healed only where it can be folded',
  installed(async (installation) => {
    const { events, store, project } = installation;
    let broken = true;
    const evolve: typeof giftsProjection.evolve = (document, event, id, index) => {
      if (broken && event.type === 'GiftClaimed') throw new Error('a fault of ours');
      return giftsProjection.evolve(document, event, id, index);
    };
    const faulty = { ...GIFTS_PROJECTION, evolve: evolve as typeof GIFTS_PROJECTION.evolve };
    const bought = await buy(events, [{}, {}]);
    const [gift = ''] = bought.gifts;
    await append(events, giftStream(gift), 'GiftClaimed', { user_id: 'u7' });
    await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u3' });
    const projector = await project({ projections: [faulty] });
    await settled(projector, events);
    await redeem(events, gift);
    await settled(projector, events);
    assert.is((await listQuarantined(store.records, giftsProjection)).length, 2);
    assert.equal(
      (await verify(installation, { projection: GIFTS_PROJECTION })).differences.map(({ kind }) => kind).toSorted(),
      ['quarantined', 'quarantined'],
    );
    broken = false;
    const deps = depsFor(events, store);
    const ids = [gift, 'feedfeedfeedfeedfeed'];
    const made = await led(deps, async () => repair(deps, faulty, ids, unwatched()), faulty);
    assert.equal(
      made?.map(({ outcome }) => outcome),
      ['repaired', 'quarantined'],
    );
    assert.match(made?.[1]?.cause ?? '', /never bought/);
    const model = openReadModel<GiftDocument>(store, giftsProjection);
    const healed = await model.get(gift);
    assert.equal([healed?.claimed_by, healed?.redemption?.redeemed], ['u7', true]);
    assert.equal(
      (await listQuarantined(store.records, giftsProjection)).map(({ documentId }) => documentId),
      ['feedfeedfeedfeedfeed'],
    );
    assert.equal(
      projector.kept()[0]?.quarantined.map(({ documentId }) => documentId),
      ['feedfeedfeedfeedfeed'],
    );
    await append(events, giftStream(gift), 'GiftCancelled', { reason: 'refunded' });
    await settled(projector, events);
    assert.is((await model.get(gift))?.cancelled, true, 'and is kept up to date again');
  }),
);

test(
  'a document that its store can not read is not served, and is repaired',
  installed(async (installation) => {
    const { dir, events, store, project } = installation;
    const {
      gifts: [hit = '', touched = '', other = ''],
    } = await buy(events, [{}, {}, {}]);
    const projector = await project();
    await settled(projector, events);
    const file = new Sqlite(join(dir, 'read.db'));
    file
      .prepare(`UPDATE doc_gifts_${giftsProjection.version} SET body = substr(body, 1, 20) WHERE id IN (?, ?)`)
      .run(hit, touched);
    file.close();
    await projector.close();
    const again = await project();
    await redeem(events, touched);
    await redeem(events, other);
    await settled(again, events);
    const model = openReadModel<GiftDocument>(store, giftsProjection);
    assert.ok((await model.get(other))?.redemption, 'the others go on');
    for (const id of [hit, touched])
      assert.instance(await model.get(id).catch((error: unknown) => error), UnavailableError);
    assert.equal(
      (await model.find({})).map(({ id }) => id),
      [other],
    );
    // One is listed by its event, the other by its reader.
    const listed = await eventually(async () => {
      const all = new Map(
        (await listQuarantined(store.records, giftsProjection)).map((entry) => [entry.documentId, entry]),
      );
      return all.size === 2 ? all : undefined;
    });
    assert.equal([listed.get(touched)?.type, listed.get(hit)?.type], ['GiftRedeemed', undefined]);
    for (const { cause } of listed.values()) assert.match(cause, /^what is stored is damaged: no JSON/);
    const { differences } = await verify(installation);
    assert.equal(
      new Map(differences.map(({ id, kind }) => [id, kind])),
      new Map([hit, touched].toSorted().map((id) => [id, 'quarantined'])),
    );
    assert.equal(await outcomes(installation, [hit, touched]), ['repaired', 'repaired']);
    assert.is((await verify(installation)).report.differences, 0);
    assert.ok((await model.get(touched))?.redemption);
    assert.equal(await listQuarantined(store.records, giftsProjection), []);
  }),
);

test(
  'a repair goes by the build in use, also where no projector runs',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const bought = await buy(
      events,
      Array.from({ length: 450 }, () => ({})),
    );
    const projector = await project();
    await settled(projector, events);
    const { target } = await rebuild(depsFor(events, store));
    await inUse(store, target);
    await projector.close();
    await append(events, 'user-9', 'UserSeen', {});
    const build = collectionOf(asBuild(GIFTS_PROJECTION, target));
    const wrong = (await store.getMany(build, bought.gifts)).map((document) => ({
      id: document?.id ?? '',
      expected: document?.position,
      document: { ...(document as StoredDocument), body: { wrong: true } },
    }));
    await store.correct(build, wrong);
    const { differences, report } = await verify(installation);
    assert.equal([differences.length, numberOf(report), report.behind], [450, target, false]);
    assert.is((await outcomes(installation, bought.gifts)).filter((outcome) => outcome === 'repaired').length, 450);
    assert.is((await verify(installation)).report.differences, 0);
    await redeem(events, bought.gifts[0] ?? '');
    const behind = await verify(installation, { catchUpMs: 100 });
    assert.equal(
      [behind.report.behind, behind.report.unsettled, behind.report.differences],
      [true, 1, 0],
      'reports unfolded events, but not as differences',
    );
  }),
);

test(
  'a verification or repair that can not be made is refused, and changes nothing',
  installed(async (installation) => {
    const { events, store, project } = installation;
    assert.match(await refusal(verify(installation)), /never been built/);
    assert.match(await refusal(outcomes(installation, ['x'])), /never been built/);
    const bought = await buy(events, [{}]);
    await settled(await project(), events);
    const [gift = ''] = bought.gifts;
    const before = await store.get(GIFTS, gift);
    assert.match(await refusal(outcomes(installation, [gift, 'nope', 'neither'])), /no document nope, neither/);
    assert.match(
      await refusal(
        outcomes(
          installation,
          Array.from({ length: 10_001 }, (_, n) => `${n}`),
        ),
      ),
      /too many/,
    );
    assert.equal(await store.get(GIFTS, gift), before);
    const next = { ...GIFTS_PROJECTION, version: giftsProjection.version + 1 };
    const inUse = new RegExp(`version ${giftsProjection.version} is in use`);
    assert.match(await refusal(verify(installation, { projection: next })), inUse);
    assert.match(await refusal(repair(depsFor(events, store), next, [gift], unwatched())), inUse);
    for (const how of [{ signal: stopped }, { signal: stopped, sample: 1 }])
      assert.instance(await verify(installation, how).catch((error: unknown) => error), VerifyInterruptedError);
    assert.is(await repair(depsFor(events, store), GIFTS_PROJECTION, [gift], unwatched(stopped)), undefined);
  }),
);

test(
  "a previous release's build is verified by its own fold",
  installed(async (installation) => {
    const { events, project } = installation;
    const [one = ''] = (await buy(events, [{}, {}])).gifts;
    await settled(await project(), events);
    const next = {
      ...GIFTS_PROJECTION,
      version: giftsProjection.version + 1,
      previous: [GIFTS_PROJECTION],
      evolve: (...what: Parameters<typeof giftsProjection.evolve>) => ({
        ...GIFTS_PROJECTION.evolve(...what),
        more: true,
      }),
    };
    for (const how of [{ projection: next }, { projection: next, sample: 2 }]) {
      const { differences, report } = await verify(installation, how);
      assert.equal([differences, numberOf(report), report.documents], [[], giftsProjection.version, 2]);
    }
    await falsify(installation, one, (body) => ({ ...body, more: true }));
    for (const how of [{ projection: next }, { projection: next, sample: 2 }])
      assert.equal(
        (await verify(installation, how)).differences.map(({ id, fields }) => [id, fields.map(({ field }) => field)]),
        [[one, ['more']]],
      );
  }),
);

test(
  'a repair fails where another process wrote meanwhile',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const bought = await buy(events, [{}]);
    const [gift = ''] = bought.gifts;
    const meddling = { ...store, correct: async () => [false] };
    await settled(await project({ store: meddling }), events);
    await falsify(installation, gift, () => ({ wrong: true }));
    assert.match(await refusal(outcomes(installation, [gift])), /somebody else wrote/);
  }),
);

/** Gifts bought and folded while no process leads, and a repair order for them. */
async function ordered(
  { events, store, project }: Installation,
  count: number,
  order: Partial<RepairOrder> = {},
): Promise<{
  ids: readonly string[];
  build: RunningBuild;
  key: string;
  out(how?: { store?: ReadStore; held?: boolean }): Promise<RepairOrder | undefined>;
}> {
  const { gifts: ids } = await buy(
    events,
    Array.from({ length: count }, () => ({})),
  );
  const projector = await project();
  await settled(projector, events);
  await projector.close();
  const documents = (await store.getMany(GIFTS, ids)).map((document) => ({
    id: document?.id ?? '',
    document: document ?? null,
  }));
  const key = await placeOrder(store, {
    name: 'gifts',
    build: giftsProjection.version,
    documents,
    through: (await events.end()) ?? null,
    ...order,
  });
  const build = await openBuild(store, GIFTS_PROJECTION);
  return {
    ids,
    build,
    key,
    async out({ store: through = store, held = true } = {}) {
      const [open] = await openOrders(store);
      assert.ok(open, 'the order is open');
      if (open !== undefined) await carryOut(build, open, { store: through, events, lease: { held } });
      return (await store.records.get<RepairOrder>(key))?.value;
    },
  };
}

test(
  'a repair order that no process carries out is waited for until it expires',
  installed(async (installation) => {
    const { events, store, project } = installation;
    const [gift = ''] = (await buy(events)).gifts;
    await settled(await project(), events);
    const put: ReadStore['records']['put'] = async (key, value, options) =>
      store.records.put(key, value, key.startsWith('repair/') ? { ...options, expiresAt: Date.now() - 1 } : options);
    const deps = depsFor(events, { ...store, records: { ...store.records, put } });
    assert.match(
      await refusal(repair(deps, GIFTS_PROJECTION, [gift], unwatched(AbortSignal.timeout(DEADLINE_MS)))),
      /no process has put anything in place/,
    );
  }),
);

test(
  'a repair order is refused where its position is not a position in the log',
  installed(async (installation) => {
    const { events, store, project } = installation;
    for (const through of ['18446744073709551615', '0000000000999999']) {
      const { key } = await ordered(installation, 1, { through });
      const projector = await project();
      const failed = async (): Promise<string | undefined> =>
        (await store.records.get<RepairOrder>(key))?.value.failure;
      await until(async () => (await failed()) !== undefined, 'it is refused');
      assert.match(
        (await failed()) ?? '',
        /^its stored position (is none that an event of this log can have|lies beyond the end of the log)$/,
      );
      await settled(projector, events);
      await projector.close();
    }
  }),
);

test(
  'a repair puts back no document that stands beyond the checkpoint',
  installed(async (installation) => {
    const { events, store } = installation;
    const {
      ids: [gift = ''],
      build,
      out,
    } = await ordered(installation, 1);
    const { position } = await redeem(events, gift);
    const before = (await store.get<GiftDocument>(GIFTS, gift)) as StoredDocument<GiftDocument>;
    const newer = { id: gift, position, body: { ...before.body, claimed_by: 'u7' } };
    await store.write([{ collection: GIFTS, documents: [newer] }]);
    assert.ok(position > (build.stored ?? ''), 'written by the next leader, or before a write was broken off');
    assert.match((await out())?.failure ?? '', new RegExp(`somebody else wrote ${gift}`));
    assert.equal(await store.get(GIFTS, gift), newer);
  }),
);

test(
  'a process without the lease repairs nothing',
  installed(async (installation) => {
    const {
      ids: [gift = ''],
      out,
    } = await ordered(installation, 1);
    await falsify(installation, gift, () => ({ wrong: true }));
    assert.instance(await out({ held: false }).catch((error: unknown) => error), LeaseLostError);
    assert.equal((await installation.store.get<{ wrong?: boolean }>(GIFTS, gift))?.body, { wrong: true });
    assert.is((await openOrders(installation.store)).length, 1, 'the order is for the next leader');
  }),
);

test(
  'documents folded by another version are not put in place',
  installed(async (installation) => {
    const {
      ids: [gift = ''],
      out,
    } = await ordered(installation, 1, { build: giftsProjection.version + 1 });
    await falsify(installation, gift, () => ({ wrong: true }));
    assert.match(
      (await out())?.failure ?? '',
      new RegExp(`^version ${giftsProjection.version} is in use by now, .* another version$`),
    );
    assert.equal((await installation.store.get<{ wrong?: boolean }>(GIFTS, gift))?.body, { wrong: true });
  }),
);

test(
  'a repair changes the edition, also where its answer was lost or only some of it was made',
  installed(async (installation) => {
    const { store } = installation;
    const lost = await ordered(installation, 1);
    await falsify(installation, lost.ids[0] ?? '', () => ({ wrong: true }));
    const before = await editionOf(store, 'gifts');
    const silentStore: ReadStore = {
      ...store,
      correct: async (...args) =>
        store.correct(...args).then(() => Promise.reject(new UnavailableError('the answer was lost'))),
    };
    assert.instance(await lost.out({ store: silentStore }).catch((error: unknown) => error), UnavailableError);
    assert.equal(
      (await lost.out())?.outcomes?.map(({ outcome }) => outcome),
      ['same'],
    );
    const after = await editionOf(store, 'gifts');
    assert.ok(after > before, `${after} after ${before}`);

    const partly = await ordered(installation, 2);
    for (const id of partly.ids) await falsify(installation, id, () => ({ wrong: true }));
    const meddled: ReadStore = {
      ...store,
      correct: async (collection, corrections) => [
        ...(await store.correct(collection, corrections.slice(0, 1))),
        false,
      ],
    };
    assert.match(
      (await partly.out({ store: meddled }))?.failure ?? '',
      new RegExp(`somebody else wrote ${partly.ids[1]} `),
    );
    assert.ok((await editionOf(store, 'gifts')) > after, 'one of them has changed');
  }),
);

const difference = (id: string): Difference => ({ id, kind: 'missing', fields: [] });

test(
  'the findings of a verification are kept for the repair',
  installed(async ({ store }) => {
    const found = await startFindings(store.records, 'gifts', 'an order');
    for (let n = 0; n < 1_203; n++) await found.add(difference(`g${n}`));
    await found.end();
    assert.equal(
      await lastFindings(store.records, 'gifts'),
      Array.from({ length: 1_203 }, (_, n) => `g${n}`),
    );
    assert.equal(await lastFindings(store.records, 'transactions'), []);
    const again = await startFindings(store.records, 'gifts', 'an order');
    await again.add(difference('only'));
    await again.end();
    assert.equal(await lastFindings(store.records, 'gifts'), ['only']);
    await forgetFindings(store.records, 'gifts');
    assert.equal(await lastFindings(store.records, 'gifts'), []);
  }),
);

test(
  'a verification keeps as many findings as a repair takes',
  installed(async ({ store }) => {
    const found = await startFindings(store.records, 'gifts', 'an order');
    for (let n = 0; n < MAX_REPAIRS + 2; n++) await found.add(difference(`g${n}`));
    await found.end();
    assert.is((await lastFindings(store.records, 'gifts')).length, MAX_REPAIRS);
  }),
);

test(
  'an event that names no document is passed over',
  installed(async (installation) => {
    const { events, project } = installation;
    await events.append('transaction-t9', [newEvent('GiftsPurchased', { transaction_id: 't9' })], 'any');
    const bought = await buy(events, [{}]);
    await settled(await project(), events);
    assert.equal(await outcomes(installation, bought.gifts), ['same']);
  }),
);

test.run();
