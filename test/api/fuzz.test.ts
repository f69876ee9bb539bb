/**
 * Requests made from the service's own description, valid ones and mutated ones: each answer must be one that the
 * description says. FUZZ_SEED repeats a run, FUZZ_EFFORT=4 makes four times as many requests.
 */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { suite } from 'uvu';
import { waitingGroups } from '../../src/ops/parked/decideGroup.js';
import { PASSING, answerOf, checked } from '../support/service/answers.js';
import { buy, purchaseOf, redeem } from '../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../support/service/service.js';
import {
  type DescribedOperation,
  type GivenAnswer,
  answerChecker,
  operationsOf,
  relationsOf,
  resolved,
} from './openapi/check.js';

const SEED = Number(process.env['FUZZ_SEED'] ?? 20_261_121);
/** How many requests are made, compared with `RUNS`. */
const EFFORT = Number(process.env['FUZZ_EFFORT'] ?? 0.4);
/** Requests an operation: what writes has more ways to go wrong. */
const RUNS = { read: Math.ceil(40 * EFFORT), write: Math.ceil(100 * EFFORT) };
/** How often it begins anew with an operation that has succeeded at nothing yet. */
const ROUNDS = Math.ceil(12 / EFFORT);

const test = suite(`fuzz (FUZZ_SEED=${SEED})`);
let service: Service;
let document: Json;
let faultOf: (answer: GivenAnswer) => string | undefined;
/** What fields and parameters of these names may well hold. */
const pool: Record<string, string[]> = {
  location_id: ['bean-soho', 'screen-soho', 'street-bath'],
  segmentId: ['seg-qr', 'seg-alpha', 'seg-pin'],
  user_id: ['ann', 'bob', 'cat'],
  phone_number: ['07700 900002', '+447700900777'],
  method: ['card'],
  type: ['gift'],
  grant_type: ['password', 'refresh_token', 'client_credentials', 'implicit'],
  token: ['nonsense'],
  client_id: ['app', 'pos', 'off'],
  client_secret: ['app-secret', 'pos-secret'],
  username: ['ann@test.example', 'bob@test.example'],
  password: ['ann-password', 'wrong'],
  redemptionId: ['latest', 'key:till-1', 'key:'],
  key: ['till-1', 'a%2Fb'],
  id: ['latte', 'drinks', 'old', 'secret'],
  brand_id: ['bean', 'club'],
  tiles: ['-0.2,51.6:0.1,51.4', '-180.0,-90.0:180.0,90.0', '170.0,1.0:-170.0,-1.0', '-0.2,51.6:0.1'],
  q: ['latte', 'coffe', 'Café'],
  message: ['Enjoy!', '🎁'],
  day: ['2026-05-04', new Date().toISOString().slice(0, 10)],
  reason: ['a complaint'],
  personId: ['gone'],
  time: [new Date().toISOString().slice(0, 10), new Date().toISOString(), '2100-01-01', '2020-01-01T12:00:00Z'],
  time_zone: ['Europe/London', 'UTC', 'Mars'],
  viewer: ['ann', 'bob'],
  from: ['2020-01-01', '2020-01-01T12:00:00Z'],
  to: ['2100-01-01', '2100-01-01 12:00'],
  merchant: ['coffee'],
  location: ['bean-soho'],
  user: ['till-coffee'],
  after: ['0000000000000001', '0mi2k3l4x.0f7d3a61'],
  parkedId: Array.from({ length: 24 }, (_, n) => `stuck-${n}`),
  expiry_date: ['2031-05-04', '2020-05-04', '2026-02-30'],
  ticket: ['T-1', 'not one'],
  url: ['https://shop.example/hooks', 'https://1.1.1.1:8443/', 'http://shop.example', 'https://127.0.0.1/'],
  since: ['2026-05-04T12:30:00Z', '2026-05-04T12:30:00.5+01:00', 'yesterday'],
  description: ['Accounting'],
  send_at: [new Date(Date.now() + 86_400_000).toISOString(), 'now', '2026-02-30T09:00:00Z'],
};
/** A purchase's and its payment's `reference` are of two kinds; one list does for both. */
const REFERENCES = {
  payment: ['pm_card_visa', 'wallet-invoice', 'pm_card_visa_chargeDeclined', 'nothing'],
  purchase: ['latte', 'any-20', 'ticket', 'pooled', 'old'],
};
let tokens: (string | undefined)[] = [];
/**
 * What parked work that is planted here belongs to: told to retry it, the service gives it up again, and says so when
 * the run lasts long enough for that.
 */
const NO_TRANSACTION = 'none';
/** Whether these can be done depends on what is under way just then: `test/api/ops/projections.test.ts` does them. */
const BY_CHANCE = new Set([
  ...['rebuild', '{name}/rebuild', '{name}/rollback'].map((what) => `POST /ops/projections/${what}`),
  // Of an erasure that another user of support requested: `test/api/ops/erasures.test.ts`.
  'POST /ops/people/{personId}/erasure/approve',
  // A member of staff's password, and a cookie: `test/api/console/session.test.ts`.
  ...['start', 'refresh'].map((step) => `POST /console/session/${step}`),
  // Exactly one of its parameters.
  'GET /ops/people',
  // Only the fields of its action: `test/api/ops/manyActions.test.ts`.
  'POST /ops/actions',
  // Of a log that is signed, and of large ones: `test/api/evidence/evidence.test.ts`.
  'GET /checkpoint',
  'GET /ops/gifts/{giftId}/proof',
  'GET /api/v2/gifts/{giftId}/redemptions/{redemptionId}/proof',
  ...['{n1}', '{n1}/{n2}', '{n1}/{n2}/{n3}', '{n1}/{n2}/{n3}/{n4}'].flatMap((steps) =>
    ['{level}', 'entries'].map((kind) => `GET /tile/${kind}/${steps}`),
  ),
  'GET /ops/gifts',
]);
/** Under `/ops`. */
let opsTokens: (string | undefined)[] = [];
let requested = 0;
/** What succeeded with a key of its own. */
const done: { readonly name: string; readonly made: Made; readonly reply: Reply }[] = [];

test.before(async () => {
  // Guesses by chance would soon end the look-ups of gifts, and requests by chance a day's erasures.
  service = await startService({
    env: {
      UNKNOWN_GIFTS_PER_CALLER: '0',
      UNKNOWN_GIFTS_PER_ADDRESS: '0',
      ERASURES_PER_DAY: '0',
      PERSON_EXPORTS_PER_DAY: '0',
      PERSONAL_READS_PER_DAY: '0',
      REPLACEMENTS_PER_DAY: '0',
      REVERSALS_PER_DAY: '0',
    },
  });
  document = (await service.ask('GET', '/openapi.json')).json;
  faultOf = answerChecker(document as object);
  const gifts = [
    ...(await buy(service, 'latte', Array(6).fill({}))),
    ...(await buy(service, 'any-20', [{ user_id: 'bob' }, { user_id: 'ann' }, {}])),
    ...(await buy(service, 'ticket')),
  ];
  pool['giftId'] = [...gifts, ...gifts.map(service.shortcodeOf), '0'.repeat(20)];
  pool['name'] = ['gifts'];
  pool['ids'] = gifts;
  const till = await service.userToken('till-coffee');
  for (const gift of gifts.slice(0, 4))
    pool['redemptionId']?.push((await redeem(service, gift)).json.data.id as string);
  const bought = await service.ask('GET', `/api/v2/gifts/${gifts[0]}`, { token: till });
  const scheduled = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', [{ user_id: 'bob' }], { sendAt: pool['send_at']?.[0] ?? '' }),
  });
  pool['transactionId'] = [bought.json.data.transaction_id, scheduled.json.data.id, 'nothing'];
  const ann = await service.userToken('ann');
  const { json: seen } = await service.ask('GET', '/api/v2/events?limit=1', {
    token: await service.clientToken(),
    headers: { 'gift-position': `${service.events.logId}:${await service.events.end()}` },
  });
  pool['event_id'] = [seen.data[0].id];
  pool['position'] = [seen.data[0].position];
  tokens = [
    ann,
    ann,
    await service.userToken('bob'),
    till,
    till,
    await service.clientToken(),
    await service.userToken('sue'),
    'nonsense',
    undefined,
  ];
  const stuck = (entity: string, cause = 'down'): object => ({
    id: crypto.randomUUID(),
    type: 'WorkParked',
    at: new Date().toISOString(),
    data: { entity, transaction_id: NO_TRANSACTION, step: 'refund', cause, event_id: 'e', times: 1 },
    metadata: { commandId: 'x', correlationId: 'x', by: {} },
  });
  await service.events.append('parked-dispute', (pool['parkedId'] ?? []).map((entity) => stuck(entity)) as Json, 'any');
  // A group of its own, so that its decisions leave the others to be decided on singly.
  await service.events.append('parked-dispute', [stuck('grouped', 'away')] as Json, 'any');
  pool['groupId'] = (await waitingGroups(service.events)).filter(({ cause }) => cause === 'away').map(({ id }) => id);
  const [aud, sue] = [await service.userToken('aud'), await service.userToken('sue')];
  opsTokens = [aud, aud, aud, aud, sue, sue, sue, sue, ann, await service.clientToken(), undefined];
});
test.after(async () => {
  const trouble = service.log.filter(
    (line) => /"level":[56]0/.test(line) && (JSON.parse(line) as Json).entity !== NO_TRANSACTION,
  );
  assert.deepEqual(trouble, []);
  await service.close();
});

/** Texts: likely ones, any ones, and ones that trip programs. */
function text(name: string): fc.Arbitrary<string> {
  const odd = fc.constantFrom(
    '',
    ' ',
    '\u0000',
    '__proto__',
    'constructor',
    '../..',
    '%00',
    '\ud83d',
    '\u202e',
    '-1',
    'null',
    '<b>',
    "' OR 1=1",
    'x'.repeat(3_000),
  );
  const known = pool[name] ?? [];
  return known.length === 0
    ? fc.oneof(fc.string(), odd)
    : fc.oneof(
        { weight: 12, arbitrary: fc.constantFrom(...known) },
        { weight: 1, arbitrary: fc.string() },
        { weight: 1, arbitrary: odd },
      );
}

/** Values that a schema allows; its `pattern` is left to chance. */
function valid(given: Json, name = '', parent = ''): fc.Arbitrary<unknown> {
  const schema = resolved(document, given);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum !== undefined) return fc.constantFrom(...(schema.enum as unknown[]));
  const alternatives = (schema.anyOf ?? schema.oneOf) as Json[] | undefined;
  if (alternatives !== undefined) return fc.oneof(...alternatives.map((one) => valid(one, name, parent)));
  if (Array.isArray(schema.type))
    return fc.oneof(...(schema.type as string[]).map((type) => valid({ ...schema, type }, name, parent)));
  switch (schema.type) {
    case 'null':
      return fc.constant(null);
    case 'object': {
      const properties = Object.entries((schema.properties ?? {}) as Record<string, Json>);
      const model = Object.fromEntries(properties.map(([key, property]) => [key, valid(property, key, name)]));
      const record = fc.record(model, { requiredKeys: (schema.required ?? []) as string[] }) as fc.Arbitrary<Json>;
      const [never, ...others] = (schema.not?.required ?? []) as string[];
      return never === undefined
        ? record
        : record.map(({ [never]: one, ...rest }) =>
            one === undefined || others.every((key) => key in rest) ? rest : { ...rest, [never]: one },
          );
    }
    case 'array':
      return (schema.uniqueItems === true ? fc.uniqueArray : fc.array)(valid(schema.items as Json, name, parent), {
        minLength: (schema.minItems ?? 0) as number,
        maxLength: 3,
      });
    case 'integer':
      return fc.integer({
        min: (schema.minimum ?? -1_000) as number,
        max: Math.min((schema.maximum ?? 5_000) as number, 5_000),
      });
    case 'boolean':
      return fc.boolean();
    case 'number':
      return fc.double({ noNaN: true, min: -180, max: 180 });
    default:
      return name === 'reference' ? fc.constantFrom(...REFERENCES[parent as keyof typeof REFERENCES]) : text(name);
  }
}

/** Now and then something else in the place of a value, or of one inside it. */
function mutated(value: unknown): fc.Arbitrary<unknown> {
  const anything = fc.oneof(fc.jsonValue(), fc.constantFrom(null, -1, 1e308, '', [], {}, true, [[]], '\u0000'));
  if (typeof value !== 'object' || value === null || Object.keys(value).length === 0) return anything;
  const keys = Object.keys(value);
  const inside = fc
    .constantFrom(...keys)
    .chain((key) =>
      mutated((value as Json)[key]).map((changed) =>
        Array.isArray(value) ? value.with(Number(key), changed) : { ...value, [key]: changed },
      ),
    );
  const without = fc
    .constantFrom(...keys)
    .map((key) => Object.fromEntries(Object.entries(value).filter(([one]) => one !== key)));
  const more = fc.tuple(fc.string(), anything).map(([key, one]) => ({ ...value, [key]: one }));
  return fc.oneof(
    { weight: 4, arbitrary: inside },
    { weight: 3, arbitrary: without },
    { weight: 1, arbitrary: more },
    { weight: 1, arbitrary: anything },
  );
}

interface Made {
  readonly path: string;
  readonly token: string | undefined;
  readonly headers: Record<string, string>;
  readonly body: string | undefined;
}

/** A text without lone surrogates: nothing else can stand in an address. */
const wellFormed = (value: string): string => value.replaceAll(/\p{Surrogate}/gu, '\ufffd');

function requests({ method, path, operation }: DescribedOperation): fc.Arbitrary<Made> {
  const parameters = (operation['parameters'] as Json[]).map((one) => resolved(document, one));
  pool['embed'] = [...relationsOf(document, operation)];
  const inPath = parameters
    .filter((one) => one.in === 'path')
    .map((one) =>
      text(one.name as string)
        .filter((value) => !/^\.{0,2}$/.test(value) && wellFormed(value) === value)
        .map((value) => [one.name as string, value] as const),
    );
  const inQuery = parameters
    .filter((one) => one.in === 'query')
    .map((one) => {
      const name = (one.name as string).replace('[]', '');
      const right = valid(one.schema as Json, name).map((value) => (Array.isArray(value) ? value : [value]));
      const wrong = fc.array(text(name), { minLength: 1, maxLength: 3 });
      return fc
        .option(fc.oneof({ weight: 4, arbitrary: right }, { weight: 1, arbitrary: wrong }), { freq: 2 })
        .map((values) => (values ?? []).map((value) => [one.name as string, String(value)] as const));
    });
  const headers = fc.record(
    {
      'idempotency-key': fc.oneof(
        { weight: 3, arbitrary: fc.constantFrom('k1', 'k2', 'k3') },
        { weight: 1, arbitrary: fc.constantFrom('a b', 'x'.repeat(256), '') },
      ),
      'gift-position': fc.oneof(
        { weight: 3, arbitrary: fc.constant(`${service.events.logId}:0000000000000001`) },
        { weight: 1, arbitrary: fc.constantFrom('x', '', `${'0'.repeat(36)}:1`) },
      ),
      'x-request-id': fc.constantFrom('mine', 'not mine', ''),
      'content-type': fc.constantFrom(
        'application/json',
        'application/json; charset=utf-8',
        'text/plain',
        'application/x-www-form-urlencoded',
        'nonsense',
      ),
    },
    { requiredKeys: [] },
  );
  // Most requests carry few of these, so that most get through to what comes after them.
  const fewHeaders = fc.oneof({ weight: 5, arbitrary: fc.constant({}) }, { weight: 2, arbitrary: headers });
  const requestBody = operation['requestBody'] as Json;
  const content: Json = requestBody?.content['application/json'].schema;
  const body =
    content === undefined
      ? fc.option(fc.constantFrom('{}', '{'), { freq: 8 })
      : fc.oneof(
          { weight: 6, arbitrary: valid(content).map((value) => JSON.stringify(value)) },
          {
            weight: 4,
            arbitrary: valid(content)
              .chain(mutated)
              .map((value) => JSON.stringify(value)),
          },
          { weight: 1, arbitrary: fc.constantFrom('', '{', 'null', '[]', '{"__proto__":1}', '"\\ud800"') },
          { weight: 1, arbitrary: fc.constant(null) },
        );
  return fc
    .record({
      named: fc.tuple(...inPath),
      queried: fc.tuple(...inQuery),
      token: fc.constantFrom(...(path.startsWith('/ops/') ? opsTokens : tokens)),
      headers: fewHeaders,
      body,
    })
    .map(({ named, queried, token, headers: more, body: sent }) => {
      const query = queried
        .flat()
        .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(wellFormed(value))}`)
        .join('&');
      const target = named.reduce(
        (filled, [name, value]) => filled.replace(`{${name}}`, encodeURIComponent(value).replaceAll('$', '$$$$')),
        path,
      );
      const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined)) as Record<
        string,
        string
      >;
      return {
        path: query === '' ? target : `${target}?${query}`,
        token,
        headers: given,
        body: method === 'GET' ? undefined : (sent ?? undefined),
      };
    });
}

async function send(method: string, { path, token, headers, body }: Made): Promise<Reply> {
  requested += 1;
  return service.ask(method, path, {
    headers,
    ...(token === undefined ? {} : { token }),
    ...(body === undefined ? {} : { body }),
  });
}

/** Headers that the description names and every answer of this status has; the others come only with some. */
const ALWAYS = new Set(['X-Request-Id', 'WWW-Authenticate', 'Allow', 'Retry-After', 'Location', 'Cache-Control']);

function hold({ method, path, operation }: DescribedOperation, made: Made, reply: Reply): void {
  checked(answerOf(reply), `${method} ${made.path}`);
  assert.ok(reply.status < 500, `${method} ${made.path}: ${reply.text}`);
  const fault = faultOf({
    method,
    path: made.path,
    status: reply.status,
    body: reply.json ?? reply.text,
    contentType: reply.headers.get('content-type') ?? '',
  });
  assert.equal(fault, undefined, `${method} ${path} ${JSON.stringify(made).slice(0, 600)}`);
  const described = (operation['responses'] as Json)[String(reply.status)] as Json;
  for (const name of Object.keys((described?.headers ?? {}) as object)) {
    if (name === 'Retry-After' && [405, 409].includes(reply.status) && !PASSING.has(reply.json.error as string))
      continue;
    if (ALWAYS.has(name)) assert.ok(reply.headers.get(name), `${method} ${made.path} ${reply.status}: no ${name}`);
  }
}

/** Some that are enabled, whatever has been done to earlier ones. */
async function endpoints(): Promise<string[]> {
  const path = '/api/v2/webhook-endpoints';
  const token = await service.clientToken();
  const present = (await service.ask('GET', path, { token })).json.data as Json[];
  for (const { id } of present) await service.ask('PATCH', `${path}/${id}`, { token, body: { disabled: false } });
  const ids = present.map(({ id }) => id as string);
  while (ids.length < 6) {
    const made = await service.ask('POST', path, { token, body: { url: 'https://shop.example/' } });
    ids.push(made.json.data.id as string);
  }
  return ids;
}

test('every answer is one that the description says, whatever is asked', async () => {
  const succeeded: string[] = [];
  const operations = operationsOf(document as object);
  for (const [index, operation] of operations.entries()) {
    const statuses = new Set<number>();
    // What has come before has used up most gifts.
    if (operation.method === 'POST' && operation.path.startsWith('/ops/gifts/'))
      pool['giftId'] = [...(await buy(service, 'latte', Array(8).fill({ user_id: 'bob' }))), '0'.repeat(20)];
    if (operation.path.endsWith('/unredeem')) for (const gift of pool['giftId'] ?? []) await redeem(service, gift);
    if (operation.path.includes('{endpointId}')) pool['endpointId'] = await endpoints();
    const name = `${operation.method} ${operation.path}`;
    const success = (): boolean => [...statuses].some((status) => status < 300);
    for (let round = 0; round === 0 || (round < ROUNDS && !success() && !BY_CHANCE.has(name)); round++) {
      await fc.assert(
        fc.asyncProperty(requests(operation), async (made) => {
          const keyed =
            operation.method === 'GET' || Object.keys(made.headers).length > 0
              ? made
              : { ...made, headers: { 'idempotency-key': `own-${requested}` } };
          const reply = await send(operation.method, keyed);
          statuses.add(reply.status);
          hold(operation, keyed, reply);
          if (keyed !== made && reply.status < 300) done.push({ name, made: keyed, reply });
        }),
        {
          seed: SEED + index + round * operations.length,
          numRuns: operation.method === 'GET' ? RUNS.read : RUNS.write,
          endOnFailure: true,
          unbiased: round > 0,
          includeErrorInReport: true,
        },
      );
    }
    if (success()) succeeded.push(name);
  }
  console.log(`fuzz: ${requested} requests, FUZZ_SEED=${SEED}`);
  assert.ok(
    requested >= operations.reduce((sum, { method }) => sum + (method === 'GET' ? RUNS.read : RUNS.write), 0),
    String(requested),
  );
  assert.deepEqual(
    succeeded.filter((one) => !BY_CHANCE.has(one)),
    operations.map(({ method, path }) => `${method} ${path}`).filter((one) => !BY_CHANCE.has(one)),
  );
  assert.equal((await service.ask('GET', '/healthz')).status, 200);
});

/** The requests that have appended anything, by their ids; records of who saw what are left by reads as well. */
async function appended(): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { events } of service.events.readAll(undefined, {})) {
    for (const {
      stream,
      metadata: { requestId },
    } of events) {
      if (requestId !== undefined && !stream.startsWith('access-')) ids.add(requestId);
    }
  }
  return ids;
}

test('says where the log stands after a write, and repeats the answer without a second effect', async () => {
  const before = await appended();
  const idOf = ({ headers }: Reply): string => headers.get('x-request-id') ?? '';
  const writes = [
    ...new Map(done.filter(({ reply }) => before.has(idOf(reply))).map((one) => [one.name, one])).values(),
  ];
  const store = await service.openStore();
  for (const record of await store.records.list('idempotency:')) await store.records.delete(record.key);
  await store.close();
  const repeated = new Map<string, string>();
  for (const { name, made, reply } of writes) {
    const again = await send(name.split(' ')[0] ?? '', made);
    assert.deepEqual(
      [again.status, again.headers.get('idempotent-replayed')],
      [reply.status, 'true'],
      `${name}: ${again.text}`,
    );
    for (const { headers } of [reply, again])
      assert.ok(headers.get('gift-position'), `${name} does not say where the log stands`);
    repeated.set(name, idOf(again));
  }
  const after = await appended();
  for (const [name, id] of repeated) assert.ok(!after.has(id), `${name} was done again`);
  assert.ok(writes.length > 5, writes.map(({ name }) => name).join());
});

test.run();
