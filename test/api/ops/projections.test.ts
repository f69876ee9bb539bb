import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { rebuildRoutes } from '../../../src/api/ops/projectionRebuilds.js';
import type { ProjectionRoutesOptions } from '../../../src/api/ops/projectionTasks.js';
import type { Call } from '../../../src/api/pipeline/route.js';
import { deferred } from '../../../src/lib/async/deferred.js';
import { resources, type Resources } from '../../../src/lib/async/resources.js';
import { AwaitedOrders } from '../../../src/ops/readmodels/orders.js';
import { startMaintenance } from '../../../src/runtime/readmodels/maintenance/maintainer.js';
import { accessStream } from '../../../src/domain/access.js';
import type { ReadStore, StoredDocument } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type GiftDocument, giftsProjection } from '../../../src/projections/gifts.js';
import type { SignedLog } from '../../../src/ops/evidence/index.js';
import { refuseAlteredLog } from '../../../src/ops/readmodels/refuseAlteredLog.js';
import { tileFolder } from '../../../src/ops/evidence/tree/tileFolder.js';
import { event as newEvent } from '../../support/engines/eventStoreEvents.js';
import { collectionOf, type Projection } from '../../../src/runtime/readmodels/projection.js';
import { requestRebuild } from '../../../src/runtime/readmodels/maintenance/rebuild.js';
import { type Lease, seizeLease } from '../../../src/runtime/coordination/lease.js';
import { previousBuildOf } from '../../../src/runtime/readmodels/previousBuilds.js';
import { putRebuild, rebuildOf } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { recordQuarantine } from '../../../src/runtime/readmodels/quarantine.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { buy, refused } from '../../support/service/giftFlow.js';
import { newInstallation, settled, silent } from '../../support/fixtures/projecting.js';
import { REQUESTED, depsFor, GIFTS_PROJECTION, NO_TOOLS } from '../../support/fixtures/rebuilding.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('api/ops/projections');
const never = new AbortController().signal;
let service: Service;
let store: ReadStore;
let bought: readonly string[] = [];

const ask = async (method: 'GET' | 'POST', path: string, body?: object, user = 'sue'): Promise<Reply> =>
  service.ask(method, `/ops/projections${path}`, {
    token: await service.userToken(user),
    ...(method === 'GET' ? {} : { body: { reason: 'a test', ...body } }),
  });
/** The answer to a verification or repair once it has ended: where that takes long, the first answer is 202. */
async function ended(path: string, body?: object, user?: string): Promise<Reply> {
  const reply = await ask('POST', path, body, user);
  if (reply.status !== 202) return reply;
  return eventually(async () => {
    const now = await ask('GET', path, undefined, user);
    return now.json.data.state !== 'running' && now;
  }, `the end of ${path}`);
}

const seen = async (): Promise<Json[]> =>
  ((await service.events.read(accessStream(new Date().toISOString()))) as Json[]).map(({ data }) => data as Json);
const served = async (): Promise<typeof giftsProjection> => ({
  ...giftsProjection,
  version: (await store.active('gifts')) ?? 0,
});
/**
 * Of each call that changes something: what was asked, why, how many documents or read models, and whether it was seen
 * through.
 */
async function recorded(path: string, name?: string): Promise<unknown[][]> {
  const all = await seen();
  return all
    .filter(({ what, asked }) => what === `POST /ops/projections/${path}` && asked.name === name)
    .map(({ asked, reason, operation_id: id }) => {
      const end = all.find((one) => one.operation_id === id && one.what === undefined);
      return [asked, reason, end?.count, end?.complete];
    });
}
const repairsRecorded = async (name: string): Promise<unknown[][]> => recorded(':name/repair', name);
const over = async (): Promise<number | undefined> =>
  eventually(async () => ((await rebuildOf(store, 'gifts')) === undefined ? store.active('gifts') : undefined));

/** Changes what is served, as nothing of ours would. */
async function falsify(id: string): Promise<void> {
  const collection = collectionOf(await served());
  const { position, body } = (await store.get<GiftDocument>(collection, id)) as StoredDocument<GiftDocument>;
  assert.deepEqual(
    await store.correct(collection, [
      { id, expected: position, document: { id, position, body: { ...body, message_id: 'falsified' } } },
    ]),
    [true],
  );
}

/** The lease of a process that builds a read model. */
const buildLease = async (name: string, holder: string): Promise<Lease | undefined> =>
  seizeLease(store.records, `rebuild/${name}`, { holder, signal: never, logger: silent });

test.before(async () => {
  service = await startService();
  store = await service.openStore();
  bought = await buy(service, 'latte', [{}, {}, {}, {}]);
});
test.after(async () => {
  await store.close();
  await service.close();
});

test('everything stands there, for support and auditors', async () => {
  await recordQuarantine(store.records, giftsProjection, {
    documentId: 'x',
    eventId: 'e',
    type: 'T',
    stream: 's',
    position: '1',
    cause: 'no',
  });
  const reply = await ask('GET', '');
  assert.equal(reply.status, 200, reply.text);
  const all = new Map((reply.json.data as Json[]).map((one) => [one.name as string, one]));
  for (const { name } of PROJECTIONS) assert.equal(all.get(name)?.kind, 'projection', name);
  for (const name of ['purchase', 'notification', 'refund'])
    assert.deepEqual([all.get(name)?.kind, all.get(name)?.in_flight, all.get(name)?.parked], ['process', 0, 0], name);
  const model = all.get('gifts');
  assert.deepEqual(
    [
      model.version,
      model.build,
      model.in_use,
      model.lag_events,
      model.lag_seconds,
      model.quarantined,
      model.rebuild,
      model.previous,
    ],
    [giftsProjection.version, 0, true, 0, 0, 1, null, null],
  );
  assert.ok(typeof model.holder === 'string' && typeof model.position === 'string', reply.text);
  const one = await ask('GET', '/gifts', undefined, 'aud');
  assert.deepEqual([one.status, one.json.data.name, one.json.data.quarantined], [200, 'gifts', 1]);
  await store.records.delete(`quarantine/gifts@${giftsProjection.version}/x`);
  for (const user of ['ann', 'till-coffee']) refused(await ask('GET', '', undefined, user), 403, 'Forbidden.');
  refused(await ask('GET', '/nope'), 404, 'Projection not found');
  assert.deepEqual(
    (await seen()).map(({ what, count }) => [what, count]),
    [
      ['GET /ops/projections', all.size],
      ['GET /ops/projections/:name', 1],
    ],
  );
});

test('a rebuild that was asked for is made by the service, and gone back from', async () => {
  const reply = await ask('POST', '/gifts/rebuild', { reason: ' ticket 4711 ' });
  assert.equal(reply.status, 202, reply.text);
  const { version, build, ...rebuild } = reply.json.data as Json;
  assert.deepEqual(
    [version, build, rebuild.kind, rebuild.by, rebuild.reason, rebuild.holder, rebuild.events],
    [giftsProjection.version, 1, 'rebuild', 'sue', 'ticket 4711', null, null],
  );
  // So few gifts may be there before the answer is.
  assert.ok(['building', 'ready'].includes(rebuild.state as string), rebuild.state as string);
  const target = await over();
  assert.notEqual(target, giftsProjection.version);
  const model = (await ask('GET', '/gifts')).json.data as Json;
  assert.deepEqual([model.build, model.rebuild, model.previous.build, model.lag_events], [1, null, 0, 0]);
  assert.ok(Date.parse(model.previous.until as string) > Date.now());
  const back = await ask('POST', '/gifts/rollback');
  assert.equal(back.status, 202, back.text);
  assert.deepEqual([back.json.data.kind, back.json.data.build], ['rollback', 0]);
  assert.equal(await over(), giftsProjection.version);
  assert.equal((await previousBuildOf(store, 'gifts'))?.number, target);
  assert.equal(
    (await service.ask('GET', `/api/v2/gifts/${bought[0] ?? ''}`, { token: await service.userToken('ann') })).status,
    200,
  );
  assert.deepEqual(await recorded(':name/rebuild', 'gifts'), [[{ name: 'gifts' }, 'ticket 4711', 1, true]]);
  assert.deepEqual(await recorded(':name/rollback', 'gifts'), [[{ name: 'gifts' }, 'a test', 1, true]]);
});

test('while another builds it is refused with who that is; aborted, it is gone', async () => {
  const lease = await buildLease('gifts', 'cli:ann@till (process 7)');
  const { value } = await requestRebuild(store, GIFTS_PROJECTION, REQUESTED);
  assert.equal((await ask('POST', '/gifts/rebuild')).headers.get('retry-after'), '5');
  refused(
    await ask('POST', '/gifts/rebuild'),
    409,
    'gifts is being rebuilt by cli:ann@till (process 7): wait for it, or abort it',
  );
  refused(
    await ask('POST', '/gifts/rollback'),
    409,
    `gifts is being rebuilt, as sue asked at ${REQUESTED.at}: wait for it, or abort it`,
  );
  const { rebuild } = (await ask('GET', '/gifts')).json.data as Json;
  assert.deepEqual([rebuild.state, rebuild.holder, rebuild.reason], ['building', 'cli:ann@till (process 7)', 'a test']);
  await lease?.release();
  await store.ensure({ name: 'gifts', version: value.target, indexes: [] });
  const aborted = await ask('POST', '/gifts/abort', { reason: 'not now' });
  assert.equal(aborted.status, 200, aborted.text);
  // The service's projector may have built it since the lease is free: then it drops the build a moment later.
  await eventually(async () => (await ask('GET', '/gifts')).json.data.rebuild === null);
  await eventually(async () => !(await store.versions('gifts')).includes(value.target));
  assert.equal(await store.active('gifts'), giftsProjection.version);
  assert.deepEqual(
    (await ask('POST', '/gifts/abort')).json,
    { data: null },
    'asked for again, it is over all the same',
  );
});

test('what is not there, not allowed or not possible is refused, and nothing is changed', async () => {
  const before = [await store.active('gifts'), await store.versions('gifts')];
  for (const path of ['rebuild', 'abort', 'rollback', 'verification', 'repair']) {
    const body = path === 'repair' ? { ids: ['x'], reason: 'why' } : {};
    refused(await ask('POST', `/nope/${path}`, body), 404, 'Projection not found');
    refused(await ask('POST', `/nope/${path}`, { ...body, nonsense: true }), 404, 'Projection not found');
    refused(await ask('POST', `/gifts/${path}`, body, 'ann'), 403, 'Forbidden.');
    if (path !== 'verification') refused(await ask('POST', `/gifts/${path}`, body, 'aud'), 403, 'Forbidden.');
  }
  refused(
    await ask('POST', '/transactions/rollback'),
    422,
    'transactions: no previous build is kept, so there is nothing to go back to',
  );
  refused(await ask('POST', '/gifts/rebuild', { reason: ' ' }), 422, 'reason must not be empty');
  refused(await ask('POST', '/gifts/rebuild', { altered: true, reason: undefined }), 422, 'reason is required');
  refused(await ask('POST', '/gifts/verification', { sample: 0 }), 422, 'sample must be at least 1');
  refused(await ask('POST', '/gifts/repair', { ids: ['x'], reason: undefined }), 422, 'reason is required');
  for (const found of [false, 'yes'])
    refused(await ask('POST', '/gifts/repair', { found, reason: 'why' }), 422, 'found must be true');
  refused(await ask('POST', '/gifts/repair', { reason: 'why' }), 422, 'give ids, or found');
  refused(await ask('POST', '/gifts/repair', { ids: ['x'], found: true, reason: 'why' }), 422, 'give ids, or found');
  refused(
    await ask('POST', '/gifts/repair', { ids: ['nope'], reason: 'why' }),
    422,
    'gifts has no document nope, nor does the log know any',
  );
  refused(
    await ask('POST', '/accounts/repair', { found: true, reason: 'why' }),
    422,
    'the last verification of accounts found nothing, or none was made in the last week',
  );
  refused(await ask('GET', '/voucher_codes/verification'), 404, 'Task not found');
  refused(await ask('GET', '/voucher_codes/repair'), 404, 'Task not found');
  assert.deepEqual([await store.active('gifts'), await store.versions('gifts')], before);
});

test('what was falsified is found field by field, and put right', async () => {
  const [one = '', two = ''] = bought;
  const before = await store.getMany(collectionOf(await served()), [one, two]);
  await falsify(one);
  await falsify(two);
  const whole = await ended('/gifts/verification', {}, 'aud');
  assert.equal(whole.status, 200, whole.text);
  const { state, by, progress, failure, result } = whole.json.data as Json;
  assert.deepEqual(
    [state, by, progress, failure, result.documents, result.differences, result.behind, result.unsettled],
    ['done', 'aud', 1, null, 4, 2, false, 0],
  );
  const status = (await ask('GET', '/gifts')).json.data as Json;
  assert.deepEqual([result.version, result.build], [status.version, status.build], 'as the status spells it');
  const found = (result.found as Json[]).find(({ id }) => id === one);
  assert.deepEqual(
    [found.kind, found.fields.map(({ field, served: value }: Json) => [field, value])],
    ['different', [['message_id', 'falsified']]],
  );
  assert.deepEqual((await ask('GET', '/gifts/verification', undefined, 'aud')).json, whole.json);
  const sampled = await ended('/gifts/verification', { sample: 3 });
  assert.deepEqual([sampled.status, sampled.json.data.result.documents], [200, 3]);
  assert.equal((await ended('/gifts/verification')).json.data.result.differences, 2);
  const repaired = await ended('/gifts/repair', { ids: [one], reason: 'ticket 4711' });
  assert.equal(repaired.status, 200, repaired.text);
  assert.deepEqual(
    [repaired.json.data.state, repaired.json.data.result],
    ['done', { documents: [{ id: one, outcome: 'repaired' }] }],
  );
  assert.deepEqual((await ask('GET', '/gifts/repair')).json, repaired.json);
  const rest = await ended('/gifts/repair', { found: true, reason: 'ticket 4711' });
  assert.deepEqual(
    new Map((rest.json.data.result.documents as Json[]).map(({ id, outcome }) => [id, outcome])),
    new Map([
      [one, 'same'],
      [two, 'repaired'],
    ]),
  );
  refused(
    await ask('POST', '/gifts/repair', { found: true, reason: 'again' }),
    422,
    'the last verification of gifts found nothing, or none was made in the last week',
  );
  assert.deepEqual(await store.getMany(collectionOf(await served()), [one, two]), before);
  assert.deepEqual(
    (await repairsRecorded('gifts')).filter(([, reason]) => reason !== 'why'),
    [
      [{ name: 'gifts', ids: [one] }, 'ticket 4711', 1, true],
      [{ name: 'gifts', found: true }, 'ticket 4711', 2, true],
      [{ name: 'gifts', found: true }, 'again', 0, false],
    ],
  );
});

test('records a repair with who and why before anything is done, also one that finds nothing', async () => {
  const why = { ids: ['nope'], reason: 'ticket 4712' };
  refused(
    await ask('POST', '/transactions/repair', why),
    422,
    'transactions has no document nope, nor does the log know any',
  );
  const running = {
    id: 't',
    kind: 'repair',
    projection: 'transactions',
    state: 'running',
    by: 'sue',
    reason: 'x',
    at: '2026-05-04T10:00:00.000Z',
    progress: 0.5,
    result: null,
    failure: null,
  };
  await store.records.put('task/repair/transactions', { ...running, told_at: new Date().toISOString() });
  refused(
    await ask('POST', '/transactions/repair', why),
    409,
    'a repair of transactions is under way since 2026-05-04T10:00:00.000Z, asked for by sue',
  );
  const record = [{ name: 'transactions', ids: ['nope'] }, 'ticket 4712', 0, false];
  assert.deepEqual(await repairsRecorded('transactions'), [record, record]);
});

test('one of a kind at a time; one whose process has ended can be asked for again', async () => {
  const task = {
    id: 't',
    kind: 'verification',
    projection: 'accounts',
    state: 'running',
    by: 'aud',
    reason: null,
    at: '2026-05-04T10:00:00.000Z',
    progress: 0.5,
    result: null,
    failure: null,
  };
  await store.records.put('task/verification/accounts', { ...task, told_at: new Date().toISOString() });
  refused(
    await ask('POST', '/accounts/verification'),
    409,
    'a verification of accounts is under way since 2026-05-04T10:00:00.000Z, asked for by aud',
  );
  assert.equal((await ask('GET', '/accounts/verification')).json.data.state, 'running');
  await store.records.put('task/verification/accounts', {
    ...task,
    told_at: new Date(Date.now() - 60_000).toISOString(),
  });
  assert.equal((await ask('GET', '/accounts/verification')).json.data.state, 'interrupted');
  const again = await ended('/accounts/verification');
  assert.deepEqual([again.status, again.json.data.state, again.json.data.result.differences], [200, 'done', 0]);
});

test('all are rebuilt at one call, or none where one can not be', async () => {
  const active = async (): Promise<(number | undefined)[]> =>
    Promise.all(PROJECTIONS.map(({ name }) => store.active(name)));
  const under = async (): Promise<boolean> =>
    (await Promise.all(PROJECTIONS.map(({ name }) => rebuildOf(store, name)))).some((one) => one !== undefined);
  const before = await active();
  for (const user of ['ann', 'aud']) refused(await ask('POST', '/rebuild', {}, user), 403, 'Forbidden.');
  const lease = await buildLease('parked', 'cli:ann@till (process 8)');
  refused(
    await ask('POST', '/rebuild', { reason: 'ticket 4713' }),
    409,
    'parked is being rebuilt by cli:ann@till (process 8): wait for it, or abort it',
  );
  await lease?.release();
  const rolledBack = {
    ...REQUESTED,
    target: transactionsProjection.version,
    from: transactionsProjection.version,
    kind: 'rollback',
    state: 'ready',
  } as const;
  await putRebuild(store, 'transactions', { ...rolledBack, state: 'aborting' }, 0);
  refused(
    await ask('POST', '/rebuild', { reason: 'ticket 4713' }),
    409,
    `transactions is being rolled back, as sue asked at ${REQUESTED.at}: wait for it, or abort it`,
  );
  await store.records.delete('rebuild/transactions');
  assert.deepEqual([await under(), await active()], [false, before]);
  const reply = await ask('POST', '/rebuild', { reason: 'ticket 4713' });
  assert.equal(reply.status, 202, reply.text);
  assert.deepEqual(
    (reply.json.data as Json[]).map(({ name }) => name),
    PROJECTIONS.map(({ name }) => name),
  );
  for (const { rebuild } of reply.json.data as Json[])
    assert.ok(
      rebuild === null || (rebuild.kind === 'rebuild' && rebuild.by === 'sue' && rebuild.reason === 'ticket 4713'),
      reply.text,
    );
  await eventually(async () => ((await under()) ? undefined : true));
  for (const [at, number] of (await active()).entries()) assert.notEqual(number, before[at]);
  assert.deepEqual(
    await recorded('rebuild'),
    [0, 0, PROJECTIONS.length].map((count) => [{}, 'ticket 4713', count, count > 0]),
  );
});

/** Of which the first event is missing. */
const ALTERED_LOG: SignedLog = {
  stored: {
    engine: 'embedded',
    logId: 'altered',
    end: async () => '0000000000000002',
    read: async () => [],
    async *readAll(_after, filter) {
      const event = { ...newEvent(), stream: 'gift-a', revision: 0, position: '0000000000000002' };
      if (filter?.types === undefined) yield { events: [event], position: event.position, caughtUp: true };
    },
  },
  folder: tileFolder('/nowhere'),
  keys: [],
};

/**
 * The routes of rebuilds on read models of their own, beside a process that carries orders out and leads.
 * @param open closes the read models
 */
async function routesOfRebuilds(open: Resources, signedLog = ALTERED_LOG) {
  const projection = transactionsProjection as unknown as Projection;
  const installation = open.add(await newInstallation(), (one) => one.destroy());
  const { events, store: own } = installation;
  await settled(await installation.project({ projections: [projection] }), events);
  open.add(
    startMaintenance({
      ...depsFor(events, own, 'a projector'),
      ...NO_TOOLS,
      projections: [projection],
      checkLog: async (options) => refuseAlteredLog(signedLog, options),
    }),
  );
  const options: ProjectionRoutesOptions = {
    of: () => ({ projection, requested: REQUESTED }),
    exists: async () => undefined,
    asking: () => REQUESTED,
    orders: open.add(new AwaitedOrders(own, silent, () => undefined)),
    store: own,
    params: {},
  };
  return { own, routes: rebuildRoutes(options) };
}

test('no rebuild is asked for of a log that was altered, but for a reason', async () => {
  const open = resources();
  const { own, routes } = await routesOfRebuilds(open);
  const [, one] = routes;
  const handled = async (body: object): Promise<unknown> =>
    one!.handle({ body, left: never } as Call, { personal: false }, async () => ({
      end: async () => undefined,
    }));
  const active = await own.active('transactions');
  await assert.rejects(handled({ reason: 'x' }), {
    code: 'projection_refused',
    message: /^the log is not what was signed, .*: events are missing before \w+ of .* \(position 0{15}2, /,
  });
  assert.equal(await rebuildOf(own, 'transactions'), undefined);
  assert.equal(((await handled({ altered: true, reason: 'looked into' })) as { status: number }).status, 202);
  await eventually(async () => (await own.active('transactions')) !== active);
  await open.close();
});

test('answers while a large log is verified, and says afterwards that nothing is built of an altered one', async () => {
  const { name } = transactionsProjection;
  const held = deferred<void>();
  const open = resources();
  const { own, routes } = await routesOfRebuilds(open, {
    ...ALTERED_LOG,
    stored: {
      ...ALTERED_LOG.stored,
      async *readAll(after, filter) {
        await held.promise;
        yield* ALTERED_LOG.stored.readAll(after, filter);
      },
    },
  });
  const [, one, lastOf] = routes;
  const ends: unknown[][] = [];
  const call = { body: { reason: 'x' }, left: never } as unknown as Call;
  const reply = await one!.handle(call, { personal: false }, async () => ({
    end: async (...end) => void ends.push(end),
  }));
  assert.deepEqual(reply, { status: 202, body: { data: null }, shown: 1 });
  const started = async () => ({ end: async () => undefined });
  const last = async (): Promise<Json> =>
    ((await lastOf!.handle(call, { personal: false }, started)) as { body: { data: Json } }).body.data;
  const under = await last();
  assert.deepEqual([under.kind, under.state, under.by, ends], ['rebuild', 'running', REQUESTED.by, []]);
  await assert.rejects(one!.handle(call, { personal: false }, started), { code: 'projection_busy' });
  held.resolve();
  const over = await eventually(async () => ((await last()).state === 'running' ? undefined : last()));
  assert.equal(over.state, 'failed');
  assert.match(String(over.failure), /^the log is not what was signed/);
  assert.deepEqual(await eventually(async () => (ends.length > 0 ? ends : undefined)), [[0, null, false]]);
  assert.equal(await rebuildOf(own, name), undefined);
  assert.equal((await ask('GET', `/${name}/rebuild`, undefined, 'ann')).status, 403);
  await open.close();
});

test("records who asks and why before anything is done; does nothing that it can't record", async () => {
  const { name } = transactionsProjection;
  const open = resources();
  const { own, routes } = await routesOfRebuilds(open);
  const status = async (): Promise<unknown[]> => [
    await own.active(name),
    await own.versions(name),
    (await rebuildOf(own, name))?.value.target,
  ];
  await requestRebuild(own, transactionsProjection as unknown as Projection, REQUESTED);
  const before = await status();
  for (const { path, handle } of routes.filter(({ method }) => method === 'POST')) {
    const failed = await handle({ body: {} } as Call, { personal: false }, async () =>
      Promise.reject(new UnavailableError('the log does not answer')),
    ).catch((error: unknown) => error);
    assert.ok(failed instanceof UnavailableError, path);
    assert.deepEqual(await status(), before, path);
  }
  await open.close();
  assert.equal((await ask('POST', `/${name}/abort`, { reason: 'not now' })).status, 200);
  assert.deepEqual((await recorded(':name/abort', name)).at(-1), [{ name }, 'not now', 1, true]);
});

test.run();
