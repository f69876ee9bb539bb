import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { request as httpRequest } from 'node:http';
import pino from 'pino';
import { suite } from 'uvu';
import { mounted, normalizedPath, routerMaker, type SubjectRouter } from '../../../src/api/pipeline/router.js';
import { application } from '../../../src/api/pipeline/server.js';
import { testRoute } from '../../support/service/testRoute.js';

const test = suite('router');

const tried: string[] = [];
const routerOf = routerMaker(({ method, path }, allow) => async (ctx) => {
  ctx.state['route'] = path;
  ctx.body = { route: `${method} ${path}`, params: ctx.params, allow };
});

const routers: readonly SubjectRouter[] = [
  routerOf('/api/v2/pets', [
    testRoute('GET', '/api/v2/pets'),
    testRoute('GET', '/api/v2/pets/:petId'),
    testRoute('POST', '/api/v2/pets/count'),
    testRoute('GET', '/api/v2/pets/count/:kind'),
    testRoute('GET', '/api/v2/pets/:petId/toys'),
    testRoute('PATCH', '/api/v2/pets/:petId'),
  ]),
  routerOf('/api/v2/petshops', [testRoute('GET', '/api/v2/petshops/:id')]),
  routerOf('/g', [testRoute('GET', '/g/:id')]),
];

/** The answer to a path that is sent as it is. */
async function ask(method: string, path: string): Promise<{ status: number; body: unknown; allow: unknown }> {
  const server = application(pino({ level: 'silent' }), [], { routers }).listen(0, '127.0.0.1');
  try {
    await once(server, 'listening');
    return await new Promise((resolve, reject) => {
      const { port } = server.address() as AddressInfo;
      httpRequest({ port, method, path, agent: false }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () =>
          resolve({
            status: response.statusCode ?? 0,
            body: text === '' ? '' : JSON.parse(text),
            allow: response.headers.allow,
          }),
        );
      })
        .on('error', reject)
        .end();
    });
  } finally {
    server.close();
  }
}

test('finds a route by method and path, with its parameters decoded', async () => {
  for (const [method, path, found, params] of [
    ['GET', '/api/v2/pets', 'GET /api/v2/pets', {}],
    ['GET', '/api/v2/pets/', 'GET /api/v2/pets', {}],
    ['GET', '/api/v2/pets/7', 'GET /api/v2/pets/:petId', { petId: '7' }],
    ['GET', '/api/v2/pets/a%2Fb%20%C3%A9', 'GET /api/v2/pets/:petId', { petId: 'a/b é' }],
    ['GET', '/api/v2/pets/%2541', 'GET /api/v2/pets/:petId', { petId: '%41' }],
    ['GET', '/api/v2/p%65ts/%37/toys/', 'GET /api/v2/pets/:petId/toys', { petId: '7' }],
    ['PATCH', '/api/v2/pets/7', 'PATCH /api/v2/pets/:petId', { petId: '7' }],
    ['GET', '/api/v2/petshops/7', 'GET /api/v2/petshops/:id', { id: '7' }],
    ['GET', '/g/7', 'GET /g/:id', { id: '7' }],
  ] as const) {
    const { status, body } = await ask(method, path);
    assert.deepEqual(
      [status, (body as { route: string }).route, (body as { params: object }).params],
      [200, found, params],
      path,
    );
  }
  assert.deepEqual(await ask('HEAD', '/g/7'), { status: 200, body: '', allow: undefined });
});

test('prefers a literal step of the path to a parameter', async () => {
  for (const [path, found] of [
    ['/api/v2/pets/count', 'POST /api/v2/pets/count'],
    ['/api/v2/pets/count/toys', 'GET /api/v2/pets/count/:kind'],
  ] as const) {
    const { body } = await ask(found.split(' ')[0] ?? '', path);
    assert.equal((body as { route: string }).route, found);
  }
  // Another method than the literal step takes is that of the parameter.
  assert.deepEqual(((await ask('GET', '/api/v2/pets/count')).body as { params: object }).params, { petId: 'count' });
});

test('refuses a path of no route, in another case, with an empty step or malformed encoding', async () => {
  for (const path of [
    '/',
    '/api/v2',
    '/api/v2/pet',
    '/api/v2/petshops',
    '/API/v2/pets',
    '/api/v2/Pets/7',
    '/api/v2/pets//toys',
    '/api/v2/pets//',
    '/api/v2/pets/7/toys/8',
    '/api/v2/pets/%',
    '/api/v2/pets/%ff',
    '/api/v2%2Fpets',
    '/G/7',
  ]) {
    const { status, body } = await ask('GET', path);
    assert.deepEqual([status, body], [404, { error: 'Not found.' }], path);
  }
});

test('answers another method with every method of the path, those of parameters too', async () => {
  for (const [method, path, allow] of [
    ['DELETE', '/api/v2/pets', 'GET, HEAD'],
    ['OPTIONS', '/api/v2/pets/7', 'GET, HEAD, PATCH'],
    ['PUT', '/api/v2/pets/count', 'GET, HEAD, PATCH, POST'],
    ['POST', '/g/7/', 'GET, HEAD'],
  ] as const) {
    const reply = await ask(method, path);
    assert.deepEqual(
      [reply.status, reply.body, reply.allow],
      [405, { error: 'Method not allowed.' }, allow],
      `${method} ${path}`,
    );
  }
});

test('tries the routes of one subject and as many steps only', () => {
  const at = mounted(
    ['/api/v2/a', '/api/v2/ab', '/c'].map((prefix) => {
      const made = routerOf(prefix, [testRoute('GET', `${prefix}/:id`), testRoute('GET', `${prefix}/:id/more`)]);
      made.bySteps.forEach((router, steps) => {
        if (router === undefined) return;
        Object.assign(router, { routes: () => Object.assign(async () => void tried.push(`${prefix} ${steps}`), {}) });
      });
      return made;
    }),
  );
  for (const path of [
    '/api/v2/a/1',
    '/api/v2/a/1/',
    '/api/v2/a',
    '/api/v2/ab/1/2',
    '/c/1',
    '/api/v2',
    '/d',
    '/',
    '/c1',
  ])
    void at(path)?.({} as never, async () => undefined);
  assert.deepEqual(tried, ['/api/v2/a 4', '/api/v2/a 4', '/api/v2/ab 5', '/c 2']);
});

test('refuses two routes of one method and path, and a route outside its prefix', () => {
  assert.throws(() => routerOf('/a', [testRoute('GET', '/a/:b'), testRoute('GET', '/a/:b')]), /two routes answer GET/);
  assert.throws(() => routerOf('/a', [testRoute('GET', '/ab')]), /not below/);
  assert.throws(() => mounted([routerOf('/a', []), routerOf('/a', [])]), /two routers are mounted at/);
});

test('spells unreserved characters out and leaves all others encoded', () => {
  for (const [path, normal] of [
    ['/a-b_c.d~e', '/a-b_c.d~e'],
    ['/%61%2D%5f%2e%7E%30', '/a-_.~0'],
    ['/%2F%25%20%C3%A9', '/%2F%25%20%C3%A9'],
    ['/%2541', '/%2541'],
  ] as const)
    assert.equal(normalizedPath(path), normal);
});

test.run();
