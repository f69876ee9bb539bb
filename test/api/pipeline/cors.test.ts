import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import pino from 'pino';
import { suite } from 'uvu';
import { HttpError } from '../../../src/api/pipeline/errors.js';
import { routerMaker } from '../../../src/api/pipeline/router.js';
import { sendJson } from '../../../src/api/pipeline/send.js';
import { application } from '../../../src/api/pipeline/server.js';
import { testRoute } from '../../support/service/testRoute.js';

const LISTED = 'https://shop.example';
const PREFLIGHT = { 'Access-Control-Request-Method': 'PATCH', 'Access-Control-Request-Headers': 'authorization' };

const routerOf = routerMaker(({ path }) => async (ctx) => {
  if (path.endsWith('/refused')) throw new HttpError('forbidden');
  sendJson(ctx, 200, ['Cache-Control', 'no-store'], '{}');
});
const routers = [
  routerOf('/pets', [
    testRoute('GET', '/pets/:id'),
    testRoute('PATCH', '/pets/:id'),
    testRoute('POST', '/pets/:id/refused'),
  ]),
];

interface Context {
  server: Server;
}

const test = suite<Context>('CORS');

test.after.each(({ server }) => void server.close());

async function asks(
  context: Context,
  corsOrigins: readonly string[],
): Promise<(method: string, path: string, headers?: Record<string, string>) => Promise<Response>> {
  context.server = application(pino({ level: 'silent' }), [], { routers, corsOrigins }).listen(0, '127.0.0.1');
  await once(context.server, 'listening');
  const { port } = context.server.address() as AddressInfo;
  return (method, path, headers = {}) => fetch(`http://127.0.0.1:${port}${path}`, { method, headers });
}

const corsHeadersOf = ({ headers }: Response): string[] =>
  [...headers.keys()].filter((name) => name.startsWith('access-control-'));

test('lets a page of a listed origin read answers and errors, with their headers', async (context) => {
  const ask = await asks(context, ['https://other.example', LISTED]);
  for (const [method, path, status] of [
    ['GET', '/pets/7', 200],
    ['POST', '/pets/7/refused', 403],
    ['GET', '/unknown', 404],
    ['DELETE', '/pets/7', 405],
  ] as const) {
    const reply = await ask(method, path, { Origin: LISTED });
    assert.deepEqual(
      [reply.status, reply.headers.get('access-control-allow-origin'), reply.headers.get('vary')],
      [status, LISTED, 'Origin'],
      path,
    );
    assert.match(
      reply.headers.get('access-control-expose-headers') ?? '',
      /Error-Code.*Gift-Position.*RateLimit, RateLimit-Policy, Retry-After.*X-Request-Id/,
    );
    assert.equal(reply.headers.get('access-control-allow-credentials'), null);
    assert.ok(reply.headers.get('x-content-type-options') !== null);
  }
});

test('answers the preflight of a listed origin with the methods of the path', async (context) => {
  const ask = await asks(context, [LISTED]);
  const reply = await ask('OPTIONS', '/pets/7', { Origin: LISTED, ...PREFLIGHT });
  assert.deepEqual(
    [reply.status, await reply.text(), reply.headers.get('access-control-allow-origin'), reply.headers.get('vary')],
    [204, '', LISTED, 'Origin'],
  );
  assert.equal(reply.headers.get('access-control-allow-methods'), 'GET, HEAD, PATCH');
  assert.equal(reply.headers.get('access-control-max-age'), '600');
  const allowed = (reply.headers.get('access-control-allow-headers') ?? '').split(', ');
  for (const name of ['Authorization', 'Content-Type', 'Idempotency-Key', 'Gift-Position', 'X-Request-Id'])
    assert.ok(allowed.includes(name), name);
});

test('answers no preflight for an unknown path, nor an OPTIONS that is none', async (context) => {
  const ask = await asks(context, [LISTED]);
  assert.equal((await ask('OPTIONS', '/unknown', { Origin: LISTED, ...PREFLIGHT })).status, 404);
  assert.equal((await ask('OPTIONS', '/pets/7', { Origin: LISTED })).status, 405);
  assert.equal((await ask('OPTIONS', '/pets/7', PREFLIGHT)).status, 405);
});

test('tells other origins nothing, however alike they are', async (context) => {
  const ask = await asks(context, [LISTED]);
  for (const origin of [
    'https://shop.example.evil',
    'http://shop.example',
    'https://SHOP.example',
    'null',
    `${LISTED}/`,
  ])
    for (const [method, status, more] of [
      ['GET', 200, {}],
      ['OPTIONS', 405, PREFLIGHT],
    ] as const) {
      const reply = await ask(method, '/pets/7', { Origin: origin, ...more });
      assert.deepEqual([reply.status, corsHeadersOf(reply), reply.headers.get('vary')], [status, [], 'Origin'], origin);
    }
  assert.equal((await ask('GET', '/pets/7')).headers.get('vary'), 'Origin');
});

test('sets no header where no origin is listed', async (context) => {
  const ask = await asks(context, []);
  const reply = await ask('GET', '/pets/7', { Origin: LISTED });
  assert.deepEqual([reply.status, corsHeadersOf(reply), reply.headers.get('vary')], [200, [], null]);
  assert.equal((await ask('OPTIONS', '/pets/7', { Origin: LISTED, ...PREFLIGHT })).status, 405);
});

test.run();
