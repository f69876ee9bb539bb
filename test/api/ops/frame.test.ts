import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type Koa from 'koa';
import { suite } from 'uvu';
import type { Principal } from '../../../src/api/pipeline/principal.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { describedErrors, openApiDocument } from '../../../src/api/openapi/openapi.js';
import { type OpsRoute, type OpsStream, opsRoute, reasonProperty } from '../../../src/api/ops/frame.js';
import { alsoNamed } from '../../../src/api/pipeline/query.js';
import { positionGate } from '../../../src/api/pipeline/positions.js';
import type { PipelineDeps } from '../../../src/api/pipeline/exchange.js';
import { serve } from '../../../src/api/pipeline/pipeline.js';
import { routerMaker } from '../../../src/api/pipeline/router.js';
import { application } from '../../../src/api/pipeline/server.js';
import { accessRecorder } from '../../../src/commands/recordAccess.js';
import { shortcodesUnder } from '../../../src/domain/giftIds.js';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import { createLogger } from '../../../src/lib/logging/logger.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { asUser } from '../../support/service/calls.js';
import { type MemoryEvents, memoryEvents } from '../../support/engines/memoryEvents.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { type Reply, request } from '../../support/service/service.js';
import { until } from '../../support/assertions/until.js';

const test = suite('api/ops/frame');
const answers = [{ status: 200, description: 'All.' }];
const logger = createLogger({ level: 'silent' });
let events: MemoryEvents;
let close: () => void = () => undefined;

/** A user with these roles. */
const withRoles = (...roles: readonly ('support' | 'auditor')[]): Principal => {
  const principal = asUser('sue');
  return principal.kind === 'user' ? { ...principal, user: { ...principal.user, roles } } : principal;
};

const route = (more: Partial<OpsRoute>): OpsRoute => ({
  method: 'GET',
  path: '/ops/things/:id',
  operation: 'listThings',
  summary: 'Things',
  tag: 'Audit',
  roles: ['auditor'],
  answers,
  errors: [],
  handle: async () => ({ status: 200, body: { data: 'all' }, shown: 2 }),
  ...more,
});

const hash = keyedHash(Buffer.alloc(32));
const caughtUp = { reached: async () => true };

/** Serves one route to a caller; gives how to ask. */
async function served(
  own: OpsRoute,
  principal: Principal = withRoles('auditor'),
): Promise<((path: string, method?: string, body?: unknown) => Promise<Reply>) & { readonly url: string }> {
  events = memoryEvents();
  const pipeline: PipelineDeps = {
    recognise: () => undefined,
    authenticate: async () => principal,
    addressOf: () => 'here',
    records: memoryRecords(Date.now),
    hash,
    shortcodes: shortcodesUnder(hash),
    positions: positionGate(
      { logId: 'log', isPosition: () => true, end: async () => undefined },
      {
        accounts: caughtUp,
        catalogue: caughtUp,
        gifts: caughtUp,
        transactions: caughtUp,
        feed: caughtUp,
        webhookEndpoints: caughtUp,
        parked: caughtUp,
        redemptions: caughtUp,
        reversals: caughtUp,
        schedule: caughtUp,
        byUser: caughtUp,
        voucherCodes: caughtUp,
        passwordCosts: caughtUp,
      },
    ),
    onUnstored: () => undefined,
  };
  const access = accessRecorder(events, () => '2026-05-04T00:00:00.000Z');
  const router = routerMaker((one, allow) => serve(one, pipeline, allow))('/ops/things', [opsRoute(access, own)]);
  const app: Koa = application(logger, [], { routers: [router] });
  const server = app.listen(0);
  close = () => {
    server.closeAllConnections();
    server.close();
  };
  const { port } = server.address() as { port: number };
  const url = `http://127.0.0.1:${port}`;
  return Object.assign(
    async (path: string, method = 'GET', body?: unknown) =>
      request(url + path, method, body === undefined ? {} : { body }),
    { url },
  );
}

test.after.each(() => close());

test('the role decides who may call: the answer is 403 otherwise, and nothing is recorded', async () => {
  for (const [principal, status] of [
    [withRoles('auditor'), 200],
    [withRoles('support'), 403],
    [withRoles(), 403],
    [asUser('ann'), 403],
    [withRoles('support', 'auditor'), 200],
  ] as const) {
    const ask = await served(route({}), principal);
    const reply = await ask('/ops/things/7');
    assert.equal(reply.status, status);
    if (status === 403) assert.deepEqual(reply.json, { error: 'Forbidden.' });
    assert.equal(events.log.length, status === 200 ? 1 : 0);
    close();
  }
  const either = await served(route({ roles: ['support', 'auditor'] }), withRoles('support'));
  assert.equal((await either('/ops/things/7')).status, 200);
});

test('a record says who saw what, and is there before the answer', async () => {
  const ask = await served(route({ query: { type: 'object', properties: { day: { type: 'string' } } } }));
  const reply = await ask('/ops/things/7?day=today');
  assert.deepEqual([reply.status, reply.json, reply.headers.get('cache-control')], [200, { data: 'all' }, 'no-store']);
  const [event] = events.log;
  assert.deepEqual([event?.type, event?.stream], ['RecordsShown', 'access-2026-05-04']);
  assert.deepEqual(event?.data, {
    what: 'GET /ops/things/:id',
    asked: { id: '7', day: 'today' },
    personal: false,
    reason: null,
    count: 2,
  });
  assert.deepEqual(event.metadata.by, { user: 'sue', client: 'client', roles: ['auditor'] });
  assert.equal(event.metadata.requestId, reply.headers.get('x-request-id'));
});

test('refuses an unknown parameter instead of ignoring it', async () => {
  const query = {
    type: 'object',
    properties: {
      merchant: { type: 'string', ...alsoNamed(['merchant_id']) },
      ids: { type: 'array', items: { type: 'string' } },
    },
  };
  const ask = await served(route({ query, handle: async (call) => ({ status: 200, body: call.query, shown: 1 }) }));
  for (const [requested, error] of [
    ['merchantid=m1', 'merchantid is not a parameter here; known are merchant, ids[]'],
    ['merchant[]=m1', 'merchant[] is not a parameter here; known are merchant, ids[]'],
    ['merchant=m1&merchant_id=m2', 'merchant must be given only once'],
    ['ids[a]=1', 'ids[a] is not a parameter here; known are merchant, ids[]'],
    ['__proto__=1', '__proto__ is not a parameter here; known are merchant, ids[]'],
  ] as const) {
    const reply = await ask(`/ops/things/7?${requested}`);
    assert.deepEqual([reply.status, reply.json], [422, { error }]);
  }
  assert.equal(events.log.length, 0);
  assert.deepEqual((await ask('/ops/things/7?merchant_id=m1&ids[0]=a&ids=b')).json, {
    merchant: 'm1',
    ids: ['a', 'b'],
  });
  close();
  const without = await served(route({}));
  assert.deepEqual((await without('/ops/things/7?merchant=m1')).json, {
    error: 'merchant is not a parameter here, where there are none',
  });
});

test('what cannot be recorded is not shown', async () => {
  const ask = await served(route({}));
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  const reply = await ask('/ops/things/7');
  assert.deepEqual([reply.status, reply.json], [503, { error: 'Service unavailable.' }]);
});

test('personal fields want a reason, which is recorded', async () => {
  const sights: boolean[] = [];
  const ask = await served(
    route({
      personal: true,
      handle: async (_call, sight) => {
        sights.push(sight.personal);
        return { status: 200, body: {}, shown: 1 };
      },
    }),
  );
  assert.deepEqual((await ask('/ops/things/7?personal=1')).json, { error: 'reason is required with personal' });
  assert.deepEqual((await ask('/ops/things/7?personal=1&reason=%20')).json, { error: 'reason must not be empty' });
  assert.equal((await ask('/ops/things/7?personal=0')).status, 200);
  assert.equal((await ask('/ops/things/7?personal=true&reason=asked%20by%20court')).status, 200);
  assert.deepEqual(sights, [false, true]);
  assert.deepEqual(
    events.log.map(({ data }) => [
      (data as { personal: boolean }).personal,
      (data as { reason: string | null }).reason,
    ]),
    [
      [false, null],
      [true, 'asked by court'],
    ],
  );
});

test('a route that does not show personal fields ignores that they are asked for', async () => {
  const ask = await served(
    route({
      query: { type: 'object', properties: { personal: { type: 'boolean' } } },
      handle: async (_call, { personal }) => ({ status: 200, body: { personal }, shown: 0 }),
    }),
  );
  assert.deepEqual((await ask('/ops/things/7?personal=1')).json, { personal: false });
});

test('a page that is watched is recorded once a minute for each who watches', async () => {
  const ask = await served(route({ watched: true }));
  for (let n = 0; n < 3; n++) await ask('/ops/things/7');
  assert.equal(events.log.length, 1);
  await ask('/ops/things/8');
  assert.equal(events.log.length, 2);
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  assert.equal((await ask('/ops/things/9')).status, 503);
  assert.equal((await ask('/ops/things/9')).status, 503, 'what was not recorded does not count as recorded');
});

test('records a watched call again where it shows another number of records', async () => {
  let shown = 0;
  const ask = await served(
    route({ watched: true, handle: async () => ({ status: 200, body: { data: 'some' }, shown }) }),
  );
  await ask('/ops/things/7');
  shown = 3;
  for (let n = 0; n < 2; n++) await ask('/ops/things/7');
  assert.deepEqual(
    events.log.map(({ data }) => (data as { readonly count: number }).count),
    [0, 3],
  );
});

test('records the reason in a body with the rest of the body', async () => {
  const body = {
    type: 'object',
    additionalProperties: false,
    required: ['reason'],
    properties: { reason: { type: 'string' }, days: { type: 'integer' } },
  };
  const ask = await served(route({ method: 'POST', body }));
  assert.equal((await ask('/ops/things/7', 'POST', { reason: ' late ', days: 3 })).status, 200);
  const [event] = events.log;
  assert.deepEqual(event?.data, {
    what: 'POST /ops/things/:id',
    asked: { id: '7', days: 3 },
    personal: false,
    reason: 'late',
    count: 2,
  });
});

test('records an answer that is repeated for its key, and does not send it unrecorded', async () => {
  const body = {
    type: 'object',
    additionalProperties: false,
    properties: { reason: reasonProperty, secret: { type: 'string' } },
  };
  let done = 0;
  const ask = await served(
    route({
      method: 'POST',
      body,
      unrecorded: ['secret'],
      handle: async () => ({ status: 200, body: { done: ++done }, shown: 2 }),
    }),
  );
  const again = (id: string): Promise<Reply> =>
    request(`${ask.url}/ops/things/7`, 'POST', {
      key: 'again',
      body: { reason: 'ticket 9', secret: 'x' },
      headers: { 'x-request-id': id },
    });
  for (const id of ['first', 'second']) {
    const reply = await again(id);
    assert.deepEqual(
      [reply.status, reply.json, reply.headers.get('cache-control'), reply.headers.get('idempotent-replayed')],
      [200, { done: 1 }, 'no-store', id === 'first' ? null : 'true'],
    );
  }
  const [first, second] = events.log;
  assert.deepEqual(second?.data, {
    what: 'POST /ops/things/:id',
    asked: { id: '7' },
    personal: false,
    reason: 'ticket 9',
    count: 2,
  });
  assert.deepEqual(
    [first?.data, first?.metadata.requestId, second?.metadata.requestId],
    [second?.data, 'first', 'second'],
  );
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  assert.equal((await again('third')).status, 503);
});

test('neither caches nor records a refusal that is repeated for its key', async () => {
  const ask = await served(
    route({ method: 'POST', handle: async () => Promise.reject(new HttpError('gift_not_found')) }),
  );
  for (const replayed of [null, 'true']) {
    const reply = await request(`${ask.url}/ops/things/7`, 'POST', { key: 'again' });
    assert.deepEqual(
      [reply.status, reply.headers.get('cache-control'), reply.headers.get('idempotent-replayed')],
      [404, 'no-store', replayed],
    );
  }
  assert.equal(events.log.length, 0);
});

test('records a change before it starts and its end afterwards, whatever was answered', async () => {
  let seenBefore: number | undefined;
  let finish: () => Promise<void> = async () => undefined;
  const ask = await served(
    route({
      async handle(_call, _sight, begin) {
        const begun = await begin();
        seenBefore = events.log.length;
        finish = async () => begun.end(3, null, true);
        return { status: 202, body: {}, shown: 0 };
      },
      answers: [{ status: 202, description: 'Under way.' }],
    }),
  );
  assert.equal((await ask('/ops/things/7')).status, 202);
  assert.deepEqual([seenBefore, events.log.map(({ type }) => type)], [1, ['OperationStarted']]);
  await finish();
  assert.deepEqual(
    events.log.map(({ type, data }) => [type, (data as { count?: number }).count]),
    [
      ['OperationStarted', undefined],
      ['OperationEnded', 3],
    ],
  );
  seenBefore = undefined;
  events.beforeAppend = () => {
    throw new UnavailableError('down');
  };
  assert.deepEqual([(await ask('/ops/things/8')).status, seenBefore], [503, undefined]);
});

const stream = (lines: number, more: Partial<OpsStream> = {}): OpsStream => ({
  contentType: 'application/x-ndjson',
  async *records() {
    for (let n = 0; n < lines; n++) {
      yield { text: n % 2 === 0 ? `{"n":${n}}\n` : '', count: 1, position: String(n) };
      if (n % 100 === 99) await sleep(1);
    }
  },
  ...more,
});

test('records a stream before it starts, and when it has ended', async () => {
  const ask = await served(route({ handle: async () => stream(4) }));
  const reply = await ask('/ops/things/7');
  assert.deepEqual(
    [reply.status, reply.text, reply.headers.get('content-type')],
    [200, '{"n":0}\n{"n":2}\n', 'application/x-ndjson'],
  );
  assert.deepEqual(
    events.log.map(({ type }) => type),
    ['OperationStarted', 'OperationEnded'],
  );
  const [begun, end] = events.log.map(({ data }) => data as Record<string, unknown>);
  const { operation_id, ...ended } = end ?? {};
  assert.deepEqual(ended, { count: 4, position: '3', complete: true });
  assert.equal(operation_id, begun?.['operation_id']);
});

test('a stream whose reader goes away ends, and the record says so', async () => {
  const ask = await served(route({ handle: async () => stream(10_000_000) }));
  const reading = await fetch(`${ask.url}/ops/things/7`, { headers: { authorization: 'Bearer x' } });
  const reader = (reading.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  await reader.cancel();
  await until(() => events.log.length >= 2);
  const ended = events.log[1]?.data as { count: number; complete: boolean } | undefined;
  assert.equal(ended?.complete, false);
  assert.ok(ended.count > 0 && ended.count < 10_000_000);
});

test('ends the record of an unread stream: HEAD, a caller that has left', async () => {
  let requested = 0;
  const ask = await served(
    route({
      handle: async () =>
        stream(0, {
          async *records() {
            requested += 1;
            yield { text: '{}\n', count: 1, position: '0' };
          },
        }),
    }),
  );
  const types = (): string[] =>
    events.log.map(({ type, data }) => `${type} ${String((data as { complete?: boolean }).complete)}`);
  assert.equal((await ask('/ops/things/7', 'HEAD')).status, 200);
  await until(() => events.log.length >= 2);
  assert.deepEqual(types(), ['OperationStarted undefined', 'OperationEnded false']);

  const leaving = new AbortController();
  events.beforeAppend = async () => {
    events.beforeAppend = () => undefined;
    leaving.abort();
    await sleep(100);
  };
  await assert.rejects(
    fetch(`${ask.url}/ops/things/7`, { headers: { authorization: 'Bearer x' }, signal: leaving.signal }),
    /aborted/,
  );
  await until(() => events.log.length >= 4);
  assert.deepEqual(types().slice(2), ['OperationStarted undefined', 'OperationEnded false']);
  assert.equal(requested, 0, 'nothing was read for nobody');
});

test("harms no other request when the end of a stream can't be recorded", async () => {
  const ask = await served(route({ handle: async () => stream(10_000_000) }));
  let tried = 0;
  const down = (): void => {
    tried += 1;
    throw new UnavailableError('down');
  };
  // One that is read, and one that is not.
  const reading = await fetch(`${ask.url}/ops/things/7`, { headers: { authorization: 'Bearer x' } });
  const reader = (reading.body as ReadableStream<Uint8Array>).getReader();
  await reader.read();
  events.beforeAppend = down;
  await reader.cancel();
  await until(() => tried >= 1);
  let begins = 0;
  events.beforeAppend = () => {
    begins += 1;
    if (begins > 1) down();
  };
  assert.equal((await ask('/ops/things/7', 'HEAD')).status, 200);
  await until(() => tried >= 2);
  assert.equal(tried, 2);
  events.beforeAppend = () => undefined;
  assert.equal((await ask('/ops/things/8', 'HEAD')).status, 200);
});

test('a stream that fails before it has said anything is answered as any failure', async () => {
  const ask = await served(
    route({
      handle: async () =>
        stream(0, {
          async *records() {
            await sleep(5);
            if (events.log.length > 0) throw new UnavailableError('the provider does not answer');
            yield { text: '', count: 0, position: null };
          },
        }),
    }),
  );
  const reply = await ask('/ops/things/7');
  assert.deepEqual([reply.status, reply.json], [503, { error: 'Service unavailable.' }]);
  assert.deepEqual(
    events.log.map(({ type, data }) => [type, (data as { complete?: boolean }).complete]),
    [
      ['OperationStarted', undefined],
      ['OperationEnded', false],
    ],
  );
});

test("harms no other request when a caller leaves early and the end can't be recorded", async () => {
  let going = 0;
  const ask = await served(
    route({
      handle: async () =>
        stream(0, {
          async *records() {
            going += 1;
            await sleep(50);
            yield { text: '{}\n', count: 1, position: '0' };
          },
        }),
    }),
  );
  let tried = 0;
  events.beforeAppend = () => {
    tried += 1;
    if (tried > 1) throw new UnavailableError('down');
  };
  const leaving = new AbortController();
  const requested = fetch(`${ask.url}/ops/things/7`, {
    headers: { authorization: 'Bearer x' },
    signal: leaving.signal,
  });
  await until(() => going >= 1);
  leaving.abort();
  await assert.rejects(requested, /aborted/);
  await until(() => tried >= 2);
  assert.equal(tried, 2);
  events.beforeAppend = () => undefined;
  assert.equal((await ask('/ops/things/8')).status, 200);
});

test('a stream whose source fails breaks off: what is not whole never looks whole', async () => {
  const failing = stream(0, {
    async *records() {
      yield { text: '{"n":0}\n', count: 1, position: '0' };
      await sleep(20);
      throw new UnavailableError('the log is gone');
    },
  });
  const ask = await served(route({ handle: async () => failing }));
  await assert.rejects(ask('/ops/things/7'), /terminated|fetch failed|aborted/);
  await until(() => events.log.length >= 2);
  assert.deepEqual(
    events.log.map(({ type, data }) => [type, (data as { complete?: boolean }).complete]),
    [
      ['OperationStarted', undefined],
      ['OperationEnded', false],
    ],
  );
});

test('the description names the role, the parameters and 403', () => {
  const described = opsRoute(
    accessRecorder(memoryEvents(), () => ''),
    route({ personal: true, roles: ['support', 'auditor'], description: 'All of them.' }),
  );
  const document = openApiDocument([described], { version: '1', publicUrl: 'http://x' }) as {
    paths: Record<string, Record<string, { description: string; parameters: { name?: string }[] }>>;
  };
  const operation = document.paths['/ops/things/{id}']?.['get'];
  assert.equal(operation?.description, 'All of them.\n\nFor users with the role `support` or `auditor`.');
  assert.deepEqual(
    operation.parameters.flatMap(({ name }) => name ?? []),
    ['id', 'personal', 'reason'],
  );
  assert.ok(describedErrors(described).some(({ code }) => code === 'forbidden'));
});

test.run();
