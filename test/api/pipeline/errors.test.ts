import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readdir, readFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import pino from 'pino';
import { suite } from 'uvu';
import { CallerLeftError } from '../../../src/api/pipeline/callerLeft.js';
import { HttpError, PASSING, answerOf as toldOf, retryAfterOf } from '../../../src/api/pipeline/errors.js';
import { ERRORS, type ErrorCode } from '../../../src/domain/errors.js';
import { application } from '../../../src/api/pipeline/server.js';
import { Refusal } from '../../../src/domain/refusal.js';
import { listen } from '../../../src/api/listener/listener.js';
import { ATTEMPTS } from '../../../src/commands/transact.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import type { Engines } from '../../../src/ports/engines.js';
import { ConflictError, EventTooLargeError } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { buyOne, purchaseOf, redeem, refused, unredeem } from '../../support/service/giftFlow.js';
import { boughtBefore } from '../../support/fixtures/pastPurchase.js';
import { requestText, sendRaw } from '../../support/service/rawHttp.js';
import {
  type Asking,
  type Json,
  type Reply,
  type Service,
  request,
  startService,
} from '../../support/service/service.js';
import { unexpected } from '../../support/assertions/unexpected.js';
import { eventually } from '../../support/assertions/until.js';
import { operationsOf } from '../openapi/check.js';

const test = suite('errors');
let service: Service;
let gift = '';

test.before(async () => {
  service = await startService();
  gift = await buyOne(service);
});
test.after(async () => {
  await unharmed(service);
  await service.close();
});

const UNKNOWN = '0'.repeat(20);

/** Asks as a user (a name), or as the asking says. */
async function ask(method: string, path: string, asking: Asking & { readonly as?: string } = {}): Promise<Reply> {
  const { as, ...rest } = asking;
  const reply = await service.ask(method, path, {
    ...rest,
    ...(as === undefined ? {} : { token: await service.userToken(as) }),
  });
  checked(answerOf(reply), `${method} ${path}`);
  return reply;
}

test('each refusal of logins, redemptions and adjustment codes has its status and message', async () => {
  const redeemed = await buyOne(service);
  const redemption = (await redeem(service, redeemed)).json.data.id as string;
  const reversed = await buyOne(service);
  await redeem(service, reversed);
  await unredeem(service, reversed);
  const body = { location_id: 'bean-soho' };
  const client = await service.clientToken();
  const login = (token: string | undefined, fields: object): Promise<Reply> =>
    ask('POST', '/oauth/token', {
      body: { grant_type: 'password', ...fields },
      ...(token === undefined ? {} : { token }),
    });
  const ann = { username: 'ann@test.example', password: 'ann-password' };

  for (const reply of [
    await login(undefined, ann),
    await login('nonsense', ann),
    await login(await service.userToken('ann'), ann),
    await login(client, { ...ann, password: 'wrong' }),
    await login(client, { ...ann, username: 'nobody@test.example' }),
    await login(client, { username: 'gone@test.example', password: 'gone-password' }),
    await ask('POST', '/oauth/token', {
      body: { grant_type: 'refresh_token', refresh_token: 'x', client_id: 'app', client_secret: 'app-secret' },
    }),
    await ask('POST', '/oauth/token', {
      body: { grant_type: 'refresh_token', refresh_token: 'x', client_id: 'app', client_secret: 'wrong' },
    }),
    await ask('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials', client_id: 'off', client_secret: 'off-secret' },
    }),
    await ask('GET', `/api/v2/gifts/${gift}/product/adjustment-codes`),
  ])
    refused(reply, 401, 'Authentication failed.');
  refused(await login(await service.clientToken('pos'), ann), 403, 'Forbidden.');

  refused(
    await ask('POST', `/api/v2/gifts/${gift}/redemptions`, { as: 'till-cinema', body }),
    403,
    'Cannot redeem this gift.',
  );
  refused(
    await ask('GET', `/api/v2/gifts/${gift}/product/adjustment-codes`, { as: 'till-cinema' }),
    403,
    'Cannot redeem this gift.',
  );
  refused(
    await ask('PATCH', `/api/v2/gifts/${redeemed}/redemptions/latest`, {
      as: 'till-cinema',
      body: { redeemed: false },
    }),
    403,
    'Cannot unredeem this gift.',
  );
  for (const unknown of [UNKNOWN, '0'.repeat(16), 'nonsense']) {
    refused(
      await ask('POST', `/api/v2/gifts/${unknown}/redemptions`, { as: 'till-coffee', body }),
      404,
      'gift not found',
    );
    refused(
      await ask('GET', `/api/v2/gifts/${unknown}/product/adjustment-codes`, { as: 'till-coffee' }),
      404,
      'gift not found',
    );
    refused(
      await ask('PATCH', `/api/v2/gifts/${unknown}/redemptions/latest`, {
        as: 'till-coffee',
        body: { redeemed: false },
      }),
      404,
      'gift not found',
    );
  }
  refused(
    await ask('PATCH', `/api/v2/gifts/${gift}/redemptions/latest`, { as: 'till-coffee', body: { redeemed: false } }),
    404,
    'gift not found',
  );
  refused(
    await ask('PATCH', `/api/v2/gifts/${redeemed}/redemptions/nonsense`, {
      as: 'till-coffee',
      body: { redeemed: false },
    }),
    404,
    'Redemption not found',
  );
  refused(
    await ask('POST', `/api/v2/gifts/${redeemed}/redemptions`, { as: 'till-coffee', body }),
    405,
    'gift already redeemed.',
  );
  refused(
    await ask('POST', `/api/v2/gifts/${await boughtBefore(service)}/redemptions`, { as: 'ann', body }),
    405,
    'gift is expired and cannot be redeemed.',
  );
  refused(
    await ask('POST', `/api/v2/gifts/${gift}/redemptions`, { as: 'ann', body: { location_id: 'nowhere' } }),
    422,
    'Invalid location.',
  );
  refused(
    await ask('PATCH', `/api/v2/gifts/${reversed}/redemptions/latest`, {
      as: 'till-coffee',
      body: { redeemed: false },
    }),
    422,
    'gift not redeemed.',
  );
  refused(
    await ask('GET', `/api/v2/gifts/${redeemed}/product/adjustment-codes`, { as: 'till-coffee' }),
    422,
    'gift already redeemed.',
  );
  assert.equal(
    (
      await ask('PATCH', `/api/v2/gifts/${redeemed}/redemptions/${redemption}`, {
        as: 'till-coffee',
        body: { redeemed: false },
      })
    ).status,
    200,
  );
});

test('the messages of 404', async () => {
  const rows: [string, string][] = [
    [`/api/v2/gifts/${UNKNOWN}`, 'gift not found'],
    [`/api/v2/gifts/${UNKNOWN}/voucher/options`, 'gift not found'],
    [`/api/v2/gifts/${UNKNOWN}/voucher/claimed`, 'gift not found'],
    [`/api/v2/gifts/${gift}/voucher/claimed`, 'Voucher not found'],
    ['/api/v2/transactions/nothing', 'transaction not found'],
    ['/api/v2/transactions/nothing/gifts', 'transaction not found'],
    ['/api/v2/products/nothing', 'Product not found'],
    ['/api/v2/products/old', 'Product not found'],
    ['/api/v2/products/shut', 'Product not found'],
    ['/api/v2/products/secret', 'Product not found'],
    ['/api/v2/product-tags/categories/nothing', 'Category not found'],
    ['/api/v2/nothing', 'Not found.'],
  ];
  for (const [path, error] of rows) refused(await ask('GET', path, { as: 'ann' }), 404, error);
});

test('answers every row of docs/api/purchases.md#purchase-refusals', async () => {
  const ok = purchaseOf('latte') as Json;
  const rows: [object, number, string][] = [
    [purchaseOf('nothing'), 422, 'Invalid product.'],
    [purchaseOf('old'), 422, 'Invalid product.'],
    [purchaseOf('latte', undefined, { reference: 'nothing' }), 422, 'Invalid payment reference.'],
    [
      purchaseOf('latte', [{ phone_number: '07700 900001', user_id: 'bob' }]),
      422,
      'receivers: give only one of phone_number or user_id',
    ],
    [purchaseOf('latte', [{ user_id: 'nobody' }]), 422, 'Receiver not found.'],
    [purchaseOf('latte', [{ phone_number: '0800' }]), 422, 'Invalid phone number.'],
    [purchaseOf('latte', Array(10_001).fill({})), 422, 'receivers: at most 10000'],
    [purchaseOf('latte', []), 422, 'receivers: at least 1'],
    [
      { ...ok, purchase: { ...ok.purchase, message: 'x'.repeat(1001) } },
      422,
      'purchase.message: at most 1000 characters',
    ],
    [purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }), 402, 'Payment declined.'],
  ];
  for (const [body, status, error] of rows)
    refused(await ask('POST', '/api/v2/transactions', { as: 'ann', body }), status, error);
  refused(await ask('POST', '/api/v2/transactions', { as: 'cat', body: ok }), 403, 'Cannot use this payment method.');
});

test('answers 401 for missing, malformed, unknown and expired tokens on every /api/v2 route only', async () => {
  const { json } = await ask('GET', '/openapi.json');
  const token = await service.userToken('ann');
  const headers: (string | undefined)[] = [
    undefined,
    '',
    'Bearer',
    'Bearer ',
    'Bearer x',
    'Bearer eyJ',
    `Basic ${Buffer.from('app:app-secret').toString('base64')}`,
    token,
    `Bearer ${token}x`,
    `Bearer ${token.slice(0, -4)}AAAA`,
    `Bearer ${token} ${token}`,
    `bearer ${token} ${token}`,
    `Token ${token}`,
    `Bearer ${'e'.repeat(9_000)}`,
    `Bearer eyJhbGciOiJub25lIn0.${token.split('.')[1]}.`,
    `Bearer ${'\u00ff'.repeat(20)}`,
  ];
  const protectedOnes = operationsOf(json as object).filter(
    ({ path }) => path.startsWith('/api/v2/') || path.startsWith('/ops'),
  );
  assert.ok(protectedOnes.length >= 17, String(protectedOnes.length));
  for (const { method, path } of protectedOnes) {
    const target = path.replaceAll(/\{\w+\}/g, 'x');
    for (const header of path.endsWith('/transactions') ? headers : headers.slice(0, 2)) {
      refused(
        await ask(method, target, header === undefined ? {} : { headers: { authorization: header } }),
        401,
        'Authentication failed.',
      );
    }
  }
  assert.equal((await ask('GET', '/api/v2/products', { headers: { authorization: `bearer   ${token}` } })).status, 200);
  const brief = await startService({ env: { ACCESS_TOKEN_TTL: '4' } });
  try {
    const soon = await brief.clientToken();
    assert.equal((await brief.ask('GET', '/api/v2/products', { token: soon })).status, 200);
    const late = await eventually(async () => {
      const reply = await brief.ask('GET', '/api/v2/products', { token: soon });
      return reply.status === 200 ? undefined : reply;
    });
    refused(late, 401, 'Authentication failed.');
  } finally {
    await brief.close();
  }
});

test('403 for a client where a user is needed, on each such route', async () => {
  const { json } = await ask('GET', '/openapi.json');
  const token = await service.clientToken();
  for (const { method, path, operation } of operationsOf(json as object).filter(({ path: one }) =>
    one.startsWith('/api/v2/'),
  )) {
    const reply = await ask(method, path.replaceAll(/\{\w+\}/g, 'x'), { token });
    if (JSON.stringify(operation['security']).includes('clientCredentials')) assert.notEqual(reply.status, 403, path);
    else refused(reply, 403, 'Forbidden.');
  }
});

test('answers 405 with Allow for other methods of a path, 404 for no path, token or slash or not', async () => {
  const { json } = await ask('GET', '/openapi.json');
  const methods = new Map<string, Set<string>>();
  const operations = operationsOf(json as object);
  for (const { path } of operations) {
    const target = path.replaceAll(/\{\w+\}/g, 'x');
    // `/things/rebuild` is a `/things/{name}` too.
    const known = operations
      .filter((one) => new RegExp(`^${one.path.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(target))
      .flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
    methods.set(target, new Set(known));
  }
  for (const path of ['/healthz', '/readyz', '/metrics', '/openapi.json', '/docs'])
    methods.set(path, new Set(['GET', 'HEAD']));
  const token = await service.userToken('ann');
  for (const [path, allowed] of methods) {
    for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND'].filter(
      (one) => !allowed.has(one),
    )) {
      for (const [target, asking] of [
        [path, {}],
        [path, { token }],
        ...(/^\/(?:docs|openapi)/.test(path) ? [] : [[`${path}/`, {}] as const]),
      ] as const) {
        const reply = await ask(method, target, asking);
        refused(reply, 405, 'Method not allowed.');
        assert.deepEqual(new Set((reply.headers.get('allow') ?? '').split(', ')), allowed, `${method} ${target}`);
      }
    }
  }
  const unknown = await ask('GET', `/api/v2/gifts/${UNKNOWN}`, { token });
  assert.deepEqual([unknown.status, unknown.headers.get('allow')], [404, null]);
  for (const path of [
    '/',
    '/api',
    '/api/v2',
    '/api/v2/',
    '/api/v1/gifts/x',
    '/api/v2/gift',
    '/api/v2/gift/',
    `/api/v2/gifts/${gift}/nothing`,
    '/oauth',
    '/API/V3/x',
    '//',
    '/g',
    '/favicon.ico',
    '/.env',
    '/ops',
  ]) {
    for (const method of ['GET', 'POST', 'DELETE', 'OPTIONS'])
      for (const asking of [{}, { token }]) refused(await ask(method, path, asking), 404, 'Not found.');
  }
});

test('the access log names routes by pattern, and a path that is none of them not at all', async () => {
  const routeOf = (id: string): unknown =>
    service.log.map((line) => JSON.parse(line) as Json).find((line) => line.req === id)?.route;
  const token = await service.userToken('ann');
  const rows: [string, string, string][] = [
    ['GET', `/api/v2/gifts/${gift}/`, '/api/v2/gifts/:giftId'],
    ['PUT', `/api/v2/gifts/${gift}`, '/api/v2/gifts/:giftId'],
    ['GET', `/api/v2/gifts/${gift}/nothing`, 'unknown'],
    ['GET', '/healthz/', '/healthz'],
    ['POST', '/readyz', '/readyz'],
    ['GET', '/docs', '/docs'],
  ];
  for (const [index, [method, path, route]] of rows.entries()) {
    await ask(method, path, { token, headers: { 'x-request-id': `logged-${index}` } });
    if (service.log.length > 0) assert.equal(routeOf(`logged-${index}`), route, path);
  }
});

test('the access log names the caller: a user with their client, a client, or none', async () => {
  const callers = [
    { token: await service.userToken('ann'), by: { user: 'ann', client: 'app' } },
    { token: await service.clientToken(), by: { client: 'app' } },
    { token: 'none', by: {} },
  ];
  for (const [index, { token, by }] of callers.entries()) {
    const id = `asked-by-${index}`;
    await ask('GET', '/api/v2/products', { token, headers: { 'x-request-id': id } });
    if (service.log.length === 0) continue;
    const { user, client } = service.log
      .map((line) => JSON.parse(line) as Json)
      .find(({ req, msg }) => req === id && msg === 'request');
    assert.deepEqual({ user, client }, { user: undefined, client: undefined, ...by });
  }
});

test('HEAD answers as GET does, without a body', async () => {
  const token = await service.userToken('ann');
  for (const path of [
    '/api/v2/products',
    `/api/v2/gifts/${gift}`,
    `/api/v2/gifts/${UNKNOWN}`,
    '/nothing',
    '/openapi.json',
    '/docs',
  ]) {
    const [get, head] = [await ask('GET', path, { token }), await service.ask('HEAD', path, { token })];
    assert.deepEqual(
      [head.status, head.text, head.headers.get('content-type')],
      [get.status, '', get.headers.get('content-type')],
      path,
    );
    assert.match(head.headers.get('x-request-id') ?? '', /./);
  }
});

test('415: other types, charsets and encodings; a missing type where a body is needed', async () => {
  const as = 'ann';
  const path = '/api/v2/transactions';
  for (const type of [
    'text/plain',
    'text/json',
    'application/x-www-form-urlencoded',
    'multipart/form-data; boundary=x',
    'application/xml',
    'application/jsonp',
    'application/json-patch+json',
    'application/merge-patch+json',
    'nonsense',
    'application/',
    '*/*',
    'application/json; charset=latin1',
    'application/json; charset=utf-16',
    'application/json; charset=utf-7',
    'application/json;charset="iso-8859-1"',
  ]) {
    refused(
      await ask('POST', path, { as, body: '{}', headers: { 'content-type': type } }),
      415,
      'Unsupported content type.',
    );
  }
  refused(await ask('POST', path, { as }), 415, 'Unsupported content type.');
  refused(await ask('POST', path, { as, headers: { 'content-type': 'text/plain' } }), 415, 'Unsupported content type.');
  refused(
    await ask('PATCH', `/api/v2/gifts/${gift}/redemptions/latest`, { as: 'till-coffee' }),
    415,
    'Unsupported content type.',
  );
  const token = await service.userToken('ann');
  const bare = await sendRaw(service.url, requestText('POST', path, { Authorization: `Bearer ${token}` }, '{}'));
  assert.deepEqual([bare?.status, bare?.body], [415, '{"error":"Unsupported content type."}']);
  for (const type of [
    'application/json;',
    'application/json;;',
    'application/json;\tcharset=utf-8',
    'application/json\t;\t charset="UTF-8" ; ',
    'APPLICATION/JSON ;x=";"',
  ]) {
    const reply = await sendRaw(
      service.url,
      requestText('POST', path, { Authorization: `Bearer ${await service.userToken(as)}`, 'Content-Type': type }, '{}'),
    );
    assert.deepEqual([reply?.status, reply?.body], [422, '{"error":"payment is required"}'], type);
  }
  for (const encoding of ['compress', 'nonsense', 'gzip, gzip', 'utf-8'])
    refused(
      await ask('POST', path, { as, body: '{}', headers: { 'content-encoding': encoding } }),
      415,
      'Unsupported content type.',
    );
  for (const type of [
    'application/json',
    'APPLICATION/JSON',
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'application/json; charset=utf8',
  ]) {
    refused(await ask('POST', path, { as, body: '{}', headers: { 'content-type': type } }), 422, 'payment is required');
  }
  refused(
    await ask('POST', path, { as, body: gzipSync('{}'), headers: { 'content-encoding': 'gzip' } }),
    422,
    'payment is required',
  );
  for (const body of ['', '&']) {
    refused(
      await ask('POST', '/oauth/token', { body, headers: { 'content-type': 'application/x-www-form-urlencoded' } }),
      422,
      'grant_type is required',
    );
  }
  assert.equal(
    (
      await ask('POST', '/oauth/token', {
        body: 'grant_type=client_credentials&client_id=app&client_secret=app-secret',
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })
    ).status,
    200,
  );
  refused(
    await ask('POST', '/oauth/token', { body: '{}', headers: { 'content-type': 'text/plain' } }),
    415,
    'Unsupported content type.',
  );
});

test('413: over 1 MiB by its length, in chunks, or once unpacked; 1 MiB is taken', async () => {
  const token = await service.userToken('ann');
  const path = '/api/v2/transactions';
  const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  // By what they say alone: none of these bodies comes.
  for (const length of [
    { 'Content-Length': '1048577' },
    { 'Content-Length': '4294967297' },
    { 'Content-Length': '1048577', 'Content-Encoding': 'gzip' },
  ]) {
    const told = await sendRaw(service.url, requestText('POST', path, { ...headers, ...length }));
    assert.deepEqual([told?.status, told?.body], [413, '{"error":"Request too large."}'], JSON.stringify(length));
  }
  const piece = `10000\r\n${' '.repeat(65_536)}\r\n`;
  const chunked = await sendRaw(
    service.url,
    [requestText('POST', path, { ...headers, 'Transfer-Encoding': 'chunked' }), ...Array<string>(20).fill(piece)],
    { pauseMs: 1 },
  );
  assert.deepEqual([chunked?.status, chunked?.body], [413, '{"error":"Request too large."}']);
  refused(await ask('POST', path, { token, body: `"${'x'.repeat(1_048_575)}"` }), 413, 'Request too large.');
  refused(await ask('POST', path, { token, body: `"${'x'.repeat(1_048_574)}"` }), 422, 'the body must be an object');
  const bomb = gzipSync(Buffer.alloc(200 * 1_048_576, ' '));
  assert.ok(bomb.length < 1_000_000);
  refused(
    await ask('POST', path, { token, body: bomb, headers: { 'content-encoding': 'gzip' } }),
    413,
    'Request too large.',
  );
  refused(
    await ask('POST', '/oauth/token', {
      body: `grant_type=${'x'.repeat(1_048_576)}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
    413,
    'Request too large.',
  );
});

test('400: what is no JSON', async () => {
  for (const body of [
    '{',
    '',
    ' ',
    '{"a":1,}',
    "{'a':1}",
    'undefined',
    'NaN',
    '01',
    '{"a":1}{}',
    '[1,2',
    '"\u0001"',
    '{"a":\u00a01}',
    '\u0000',
    '<xml/>',
  ]) {
    refused(
      await ask('POST', '/api/v2/transactions', { as: 'ann', body, headers: { 'content-type': 'application/json' } }),
      400,
      'Malformed JSON.',
    );
  }
  refused(
    await ask('POST', '/api/v2/transactions', {
      as: 'ann',
      body: Buffer.from('not gzip'),
      headers: { 'content-encoding': 'gzip' },
    }),
    400,
    'Malformed JSON.',
  );
  const unsaid = await sendRaw(
    service.url,
    requestText('POST', '/api/v2/transactions', {
      Authorization: `Bearer ${await service.userToken('ann')}`,
      'Content-Type': 'application/json',
    }),
  );
  assert.deepEqual([unsaid?.status, unsaid?.body], [400, '{"error":"Malformed JSON."}']);
  for (const body of ['null', '1', '"x"', 'true', '[]'])
    refused(await ask('POST', '/api/v2/transactions', { as: 'ann', body }), 422, 'the body must be an object');
});

test('422: a query that breaks its schema, embeds that are none', async () => {
  const rows: [string, string][] = [
    ['/api/v2/products?min_price=x', 'min_price must be a whole number'],
    ['/api/v2/products?min_price=-1', 'min_price must be at least 0'],
    ['/api/v2/products?max_price=1.5', 'max_price must be a whole number'],
    ['/api/v2/products?max_price=1e3', 'max_price must be a whole number'],
    ['/api/v2/products?min_price=1&min_price=2', 'min_price must be given only once'],
    ['/api/v2/products?embed[]=stores', 'Unknown embed: stores.'],
    ['/api/v2/products/latte?embed=__proto__', 'Unknown embed: __proto__.'],
    ['/api/v2/brands?consolidated=yes', 'consolidated must be true or false'],
    ['/api/v2/brands?embed[]=products&embed[]=nonsense', 'Unknown embed: nonsense.'],
    ['/api/v2/product-tags/categories?page=0', 'page must be at least 1'],
    ['/api/v2/product-tags/categories?per_page=101', 'per_page must be at most 100'],
    ['/api/v2/product-tags/categories?page=99999999999999999999', 'page must be at most 2147483647'],
    ['/api/v2/product-tags/categories?embed[]=brand', 'Unknown embed: brand.'],
    [`/api/v2/brands?embed[]=${encodeURIComponent('Läden 🎁')}`, 'Unknown embed: Läden 🎁.'],
    ['/api/v2/tiles/0,0:1,1', 'Invalid tile.'],
    ['/api/v2/tiles/nonsense', 'Invalid tile.'],
    ['/api/v2/tiles/0.0,91.0:1.0,1.0', 'Invalid tile.'],
    ['/api/v2/tiles/-0.2,51.4:0.1,51.6?platform=x', 'platform must be app or imessage'],
    ['/api/v2/tiles/-0.2,51.4:0.1,51.6?granularity=21', 'granularity must be at most 20'],
  ];
  const token = await service.clientToken();
  for (const [path, error] of rows) {
    const reply = await ask('GET', path, { token });
    if (path.includes('platform') || reply.status !== 422) assert.equal(reply.status, 422, `${path} ${reply.text}`);
    else refused(reply, 422, error);
  }
  assert.equal((await ask('GET', '/api/v2/brands?consolidated=1&consolidates=x&x=1&x=2', { token })).status, 200);
});

test('the token endpoint’s own refusals', async () => {
  const token = await service.clientToken();
  const rows: [object, number, string][] = [
    [{}, 422, 'grant_type is required'],
    [{ grant_type: 7 }, 422, 'grant_type must be a string'],
    [{ grant_type: 'implicit' }, 400, 'Unsupported grant type.'],
    [{ grant_type: '__proto__' }, 400, 'Unsupported grant type.'],
    [{ grant_type: 'password', username: 'x' }, 422, 'password is required'],
    [{ grant_type: 'password', username: {}, password: 'x' }, 422, 'username must be a string'],
    [{ grant_type: 'password', username: 'x', password: 'x', scope: 'x' }, 401, 'Authentication failed.'],
    [{ grant_type: 'client_credentials', client_id: 'app' }, 422, 'client_secret is required'],
    [{ grant_type: 'refresh_token', client_id: 'app', client_secret: 'app-secret' }, 422, 'refresh_token is required'],
    [{ grant_type: 'client_credentials', client_id: 'app', client_secret: 'wrong' }, 401, 'Authentication failed.'],
  ];
  for (const [body, status, error] of rows) {
    const reply = await ask('POST', '/oauth/token', { token, body });
    refused(reply, status, error);
    assert.equal(reply.headers.get('cache-control'), 'no-store', reply.text);
  }
  const ok = await ask('POST', '/oauth/token/', {
    body: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
  });
  assert.deepEqual(
    [ok.status, ok.headers.get('cache-control'), ok.headers.get('pragma')],
    [200, 'no-store', 'no-cache'],
  );
});

test('X-Request-Id: the caller’s own where it is one, else a new one', async () => {
  for (const own of ['a', 'till-7:42', 'A.b_c:d-9', 'x'.repeat(128)])
    assert.equal((await ask('GET', '/nothing', { headers: { 'x-request-id': own } })).headers.get('x-request-id'), own);
  for (const other of ['', 'x'.repeat(129), 'a b', 'a/b', 'a,b', '<script>', 'ü', "a'b", 'a;b']) {
    assert.match(
      (await ask('GET', '/nothing', { headers: { 'x-request-id': other } })).headers.get('x-request-id') ?? '',
      /^[0-9a-f-]{36}$/,
      other,
    );
  }
  const twice = await sendRaw(
    service.url,
    requestText('GET', '/nothing', { 'X-Request-Id': 'one', 'x-request-id': 'two' }),
  );
  assert.match(twice?.headers.get('x-request-id') ?? '', /^[0-9a-f-]{36}$/);
});

test('the order of the checks: each fault hides those after it', async () => {
  const order = await buyOne(service, 'latte', { user_id: 'bob' });
  await redeem(service, order, 'bob');
  const earlier = await buyOne(service);
  const path = `/api/v2/gifts/${UNKNOWN}/redemptions?embed[]=nonsense&page=x`;
  const huge = '{'.repeat(1_048_577);
  const bad = { 'idempotency-key': 'a b', 'gift-position': 'nonsense', 'content-type': 'text/plain' };
  refused(await ask('POST', '/api/v2/gifts/x/nothing', { body: huge, headers: bad }), 404, 'Not found.');
  refused(await ask('PUT', path, { body: huge, headers: bad }), 405, 'Method not allowed.');
  refused(await ask('POST', path, { body: huge, headers: bad }), 401, 'Authentication failed.');
  refused(await ask('POST', path, { token: await service.clientToken(), body: huge, headers: bad }), 403, 'Forbidden.');
  const token = await service.userToken('cat');
  refused(await ask('POST', path, { token, body: huge, headers: bad }), 400, 'Invalid idempotency key.');
  refused(
    await ask('POST', path, { token, body: huge, key: 'k1', headers: { ...bad, 'idempotency-key': 'k1' } }),
    400,
    'Invalid position.',
  );
  refused(
    await ask('POST', path, { token, body: huge, key: 'k1', headers: { 'content-type': 'text/plain' } }),
    415,
    'Unsupported content type.',
  );
  refused(await ask('POST', path, { token, body: huge, key: 'k1' }), 413, 'Request too large.');
  refused(await ask('POST', path, { token, body: '{', key: 'k1' }), 400, 'Malformed JSON.');
  // A key that was used comes before what the request is about.
  const used = `/api/v2/gifts/${earlier}/redemptions`;
  assert.equal((await ask('POST', used, { as: 'ann', body: { location_id: 'bean-soho' }, key: 'k2' })).status, 201);
  refused(
    await ask('POST', used, { as: 'ann', body: {}, key: 'k2' }),
    422,
    'Idempotency key already used with another request.',
  );
  refused(await ask('POST', path, { token, body: {}, key: 'k1' }), 404, 'gift not found');
  const known = `/api/v2/gifts/${order}/redemptions`;
  refused(await ask('POST', known, { token, body: {} }), 403, 'Cannot redeem this gift.');
  refused(await ask('POST', known, { as: 'bob', body: {} }), 422, 'location_id is required');
  refused(await ask('POST', known, { as: 'bob', body: { location_id: 'nowhere' } }), 422, 'Invalid location.');
  refused(await ask('POST', known, { as: 'bob', body: { location_id: 'bean-soho' } }), 405, 'gift already redeemed.');
  // Body, then query, then the facts they name.
  const voucher = `/api/v2/gifts/${order}/voucher?embed[]=nonsense`;
  refused(await ask('POST', voucher, { as: 'bob', body: { segmentId: 7 } }), 422, 'segmentId must be a string');
  refused(await ask('POST', voucher, { as: 'bob', body: { segmentId: 'nothing' } }), 422, 'Unknown embed: nonsense.');
  refused(
    await ask('POST', `/api/v2/gifts/${order}/voucher`, { as: 'bob', body: { segmentId: 'nothing' } }),
    422,
    'Invalid segment.',
  );
  refused(await ask('GET', '/api/v2/transactions/x/gifts?page=0', { as: 'bob' }), 404, 'transaction not found');
});

test("sends Allow with a 405 of a gift's state, every method of the path, also when repeated", async () => {
  const redeemed = await buyOne(service);
  await redeem(service, redeemed);
  for (const [path, body] of [
    ['redemptions', { location_id: 'bean-soho' }],
    ['voucher', {}],
    ['voucher/claimed', {}],
    ['claim', undefined],
  ] as const) {
    // Bob holds no gift of ann's: a claim takes what opens it.
    const target = `/api/v2/gifts/${path === 'claim' ? service.shortcodeOf(redeemed) : redeemed}/${path}`;
    const allowed = (await ask('DELETE', target)).headers.get('allow');
    assert.equal(allowed, path === 'voucher/claimed' || path === 'redemptions' ? 'GET, HEAD, POST' : 'POST');
    for (const headers of [{}, { 'idempotency-key': 'late' }, { 'idempotency-key': 'late' }]) {
      const reply = await ask('POST', target, {
        as: path === 'claim' ? 'bob' : 'ann',
        headers,
        ...(body === undefined ? {} : { body }),
      });
      refused(reply, 405, 'gift already redeemed.');
      assert.equal(reply.headers.get('allow'), allowed);
    }
  }
});

test('an unforeseen error goes to the log alone, with the request’s id', async () => {
  const lines: Json[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const thrown: unknown[] = [
    new TypeError('Cannot read at /home/x/secret.js:1:2 SELECT'),
    'a string',
    undefined,
    Object.assign(new Error('exposed?'), { status: 418, expose: true }),
  ];
  const listener = await listen(0, '127.0.0.1', unexpected);
  try {
    for (const error of thrown) {
      listener.serve(application(logger, [() => Promise.reject(error as Error)]).callback());
      const reply = await request(`http://127.0.0.1:${listener.port}/`, 'GET', { headers: { 'x-request-id': 'mine' } });
      refused(reply, 500, 'Internal error.');
      assert.deepEqual([lines.at(-2)?.level, lines.at(-2)?.req, lines.at(-1)?.status], [50, 'mine', 500]);
    }
    listener.serve(
      application(logger, [() => Promise.reject(new UnavailableError('10.0.0.7:27017 is down'))]).callback(),
    );
    const unavailable = await request(`http://127.0.0.1:${listener.port}/`, 'GET');
    checked(answerOf(unavailable));
    refused(unavailable, 503, 'Service unavailable.');
  } finally {
    await listener.close();
  }
});

test('a caller taken to have left gets nothing, and does not wait for it: the connection ends', async () => {
  const listener = await listen(0, '127.0.0.1', unexpected);
  try {
    listener.serve(application(pino({ level: 'silent' }), [() => Promise.reject(new CallerLeftError())]).callback());
    const socket = connect({ port: listener.port, host: '127.0.0.1', allowHalfOpen: true });
    socket.end(requestText('GET', '/'));
    let answered = false;
    socket.on('data', () => (answered = true));
    await once(socket, 'close');
    assert.equal(answered, false);
  } finally {
    await listener.close();
  }
});

test("warns of a response that breaks off by the service's fault, not by its caller's leaving", async () => {
  const lines: Json[] = [];
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const told = async (body: Readable | string, fault?: Error): Promise<string> => {
    const listener = await listen(0, '127.0.0.1', unexpected);
    try {
      listener.serve(application(logger, [(ctx) => void (ctx.body = body)]).callback());
      const socket = connect(listener.port, '127.0.0.1');
      socket.on('error', () => undefined).write(requestText('GET', '/', { 'X-Request-Id': 'mine' }));
      await once(socket, 'data');
      if (fault === undefined) socket.resetAndDestroy();
      else (body as Readable).destroy(fault);
      const { level, req, msg } = await eventually(() => lines.find((line) => line.msg !== 'request'));
      lines.length = 0;
      return `${level} ${req} ${msg}`;
    } finally {
      await listener.close();
    }
  };
  // More than the connection takes at once.
  assert.equal(await told('x'.repeat(20_000_000)), '30 mine a caller left before all of the response was sent');
  const begun = (): Readable => {
    const body = new Readable({ read: () => undefined });
    body.push('begun');
    return body;
  };
  assert.equal(await told(begun()), '30 mine a caller left before all of the response was sent');
  assert.equal(await told(begun(), new Error('read ECONNRESET')), '40 mine a response could not be sent whole');
});

test('every error has its status and message', () => {
  for (const [code, [status, message]] of Object.entries(ERRORS)) {
    const told = toldOf(new HttpError(code as ErrorCode, { message: message === '' ? 'said' : message }));
    assert.deepEqual(
      [told.status, told.message, told.unforeseen, told.headers],
      [status, message === '' ? 'said' : message, false, { 'Error-Code': code, ...retryAfterOf(code as ErrorCode) }],
    );
  }
  assert.equal(toldOf(new Refusal('gift_expired')).message, 'gift is expired and cannot be redeemed.');
  assert.deepEqual(
    [toldOf(new EventTooLargeError(2_000_000)).status, toldOf(new UnavailableError('x')).headers],
    [413, { 'Error-Code': 'unavailable', 'Retry-After': '1' }],
  );
});

test('a command that has lost its last race answers 503 and says when to ask again', async () => {
  let racing = false;
  let lost = 0;
  const through = (engines: Engines): Engines => ({
    ...engines,
    events: {
      ...engines.events,
      append: async (stream, batch, expected) => {
        if (!racing || !stream.startsWith('gift-')) return engines.events.append(stream, batch, expected);
        lost += 1;
        throw new ConflictError(stream, expected, 7);
      },
    },
  });
  const own = await startService({ app: { through } });
  try {
    const raced = await buyOne(own);
    await eventually(async () => (await own.events.read(giftStream(raced))).length > 0);
    racing = true;
    const reply = await redeem(own, raced, 'till-coffee', 'bean-soho', { key: 'raced' });
    assert.deepEqual(
      [reply.status, reply.headers.get('retry-after'), reply.json],
      [503, '1', { error: 'Service unavailable.' }],
    );
    assert.equal(lost, ATTEMPTS);
    racing = false;
    assert.equal((await redeem(own, raced, 'till-coffee', 'bean-soho', { key: 'raced' })).status, 201);
  } finally {
    await own.close();
  }
});

/** Errors that no request ends with, or that are 500 for a reason. */
const ANSWERED_OTHERWISE: Readonly<Record<string, string>> = {
  AddressRefusedError: 'ends an attempt to deliver a webhook',
  AlteredLogRefusedError: '422, with its message',
  BackupDamagedError: 'ends a command of the command line',
  BackupExistsError: 'ends a command of the command line',
  BrokenStreamError: 'ends a connection of the embedded bus',
  CallerLeftError: 'no caller is left',
  CommandFailure: 'ends a command of the command line',
  WouldAppend: 'ends a command of a dry run',
  ConfigError: 'ends a start',
  CopyInterruptedError: 'ends a command of the command line',
  CopyRefusedError: 'ends a command of the command line',
  DataFileError: 'ends a start',
  DeclinedError: 'ends in a worker',
  DeliveryFault: '422, with its message',
  EngineError: 'ends a start',
  ErasureWaitsError: '409, with its message',
  EventStoreDbError: 'ends a start',
  EventTooLargeError: '413',
  FilesGoneError: 'an UnavailableError once it leaves the adapter',
  Foreign: 'ends in its command',
  GiveUpError: 'ends in a process manager',
  HttpError: 'has a status',
  ImportFaultsError: 'ends a command of the command line',
  ImportInterruptedError: 'ends a command of the command line',
  LateError: 'an UnavailableError once it leaves the adapter',
  LogAlteredError: 'ends a run of the keeper of the tree',
  MaintenanceRefusedError: '409 or 422, with its message',
  MalformedEventError: '400 of a webhook',
  MalformedEvidenceError: 'ends a command of the command line; 400 of a witness; 503: the log or a tile was altered',
  MalformedMessageError: 'ends in a process manager; 503: processes of two releases do not understand each other',
  MismatchError: 'ends in a worker',
  NeverTakenError: 'ends in a worker',
  RetryLaterError: '503, by the one route that asks a provider',
  NotYetError: 'ends in a process manager',
  NumberFault: 'ends in a worker',
  PruneNeedsYesError: 'ends a command of the command line',
  Refusal: 'has a status',
  RefusedError: 'ends in a worker',
  SignatureError: '400 of a webhook',
  SpoiltTilesError: 'ends a run of the keeper of the tree',
  StoppedError: 'ends a command of the command line',
  StreamDeletedError: '500: a stream of the log is gone for good',
  PublicReasonError: 'ends a run of a follower',
  TimeError: '422, with its message',
  OtherTileError: 'ends a run of the keeper of the tree',
  UnresolvedNameError: 'ends an attempt to deliver a webhook',
  WitnessDisagreesError: 'is said by the keeper of the tree',
  WitnessRefusesError: 'is said by the keeper of the tree',
  ProviderError: '503, by the one route that asks a provider',
  EvidenceError: 'is the class of those below that say what is wrong with evidence',
  UnprovenEventError: 'ends a command of the command line; 503: the log or a tile was altered',
  UntrustedNoteError: 'ends a command of the command line; 403 of a witness',
  VerifyInterruptedError: 'ends a task',
};

test('each class of error in src is known to be answered as 503, or in another way', async () => {
  const parents = new Map<string, string>();
  for (const name of await readdir('src', { recursive: true })) {
    if (!name.endsWith('.ts')) continue;
    for (const [, own = '', parent = ''] of (await readFile(join('src', name), 'utf8')).matchAll(
      /class (\w+) extends (\w+)/g,
    ))
      parents.set(own, parent);
  }
  const isError = (name: string | undefined): boolean =>
    name !== undefined && (name === 'Error' || isError(parents.get(name)));
  const isClassified = (name: string | undefined): boolean =>
    name !== undefined && (name in PASSING || name in ANSWERED_OTHERWISE || isClassified(parents.get(name)));
  const errors = [...parents.keys()].filter(isError);
  assert.deepEqual(
    errors.filter((name) => !isClassified(name)),
    [],
  );
  assert.deepEqual(
    [...Object.keys(PASSING), ...Object.keys(ANSWERED_OTHERWISE)].filter((name) => !errors.includes(name)),
    [],
  );
});

test.run();
