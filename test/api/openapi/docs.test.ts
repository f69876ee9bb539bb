import { once } from 'node:events';
import type { Server } from 'node:http';
import { request } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import helmet from 'koa-helmet';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { HttpError, answerOf } from '../../../src/api/pipeline/errors.js';
import { docs } from '../../../src/api/openapi/docs.js';
import { openApiDocument } from '../../../src/api/openapi/openapi.js';
import type { Route } from '../../../src/api/pipeline/route.js';
import { CHROMIUM, onPage } from '../../support/service/browser.js';

const route = (path: string, tag: string): Route => ({
  method: 'GET',
  path,
  operation: `get${tag}`,
  summary: `Summary of ${path}`,
  tag,
  caller: 'any',
  answers: [{ status: 200, description: 'All well.', schema: { title: 'Thing', type: 'object' }, example: {} }],
  errors: [],
  handle: async () => ({ status: 200, body: {} }),
});
const document = openApiDocument([route('/api/v2/gifts/:giftId', 'Gifts'), route('/api/v2/brands', 'Catalogue')], {
  version: '1.0.0',
  publicUrl: 'http://gifts.example',
});

interface Context {
  server: Server;
  base: string;
}

const test = suite<Context>('the docs page', { server: undefined as unknown as Server, base: '' });

test.before(async (context) => {
  const app = new Koa();
  app.use(async (ctx, next) => {
    try {
      await next();
    } catch (error) {
      const told = answerOf(error);
      ctx.status = told.status;
      ctx.set(told.headers);
      ctx.body = { error: told.message };
    }
  });
  app.use(helmet());
  app.use(docs(() => document));
  app.use(() => {
    throw new HttpError('not_found');
  });
  context.server = app.listen(0, '127.0.0.1');
  await once(context.server, 'listening');
  context.base = `http://127.0.0.1:${(context.server.address() as AddressInfo).port}`;
});

test.after(async ({ server }) => {
  server.close();
  server.closeAllConnections();
  await once(server, 'close');
});

/** The status of a path sent as it is: `fetch` would tidy it up, and ask for what is new. */
async function statusOf(
  base: string,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<number | undefined> {
  const { port } = new URL(base);
  const sent = request({ host: '127.0.0.1', port, path, headers });
  sent.end();
  const [response] = (await once(sent, 'response')) as [{ statusCode?: number; resume(): void }];
  response.resume();
  return response.statusCode;
}

test('/openapi.json is the document, with and without a trailing slash', async ({ base }) => {
  for (const path of ['/openapi.json', '/openapi.json/']) {
    const response = await fetch(base + path);
    assert.is(response.status, 200);
    assert.match(response.headers.get('content-type') ?? '', /^application\/json/);
    assert.equal(await response.json(), JSON.parse(JSON.stringify(document)));
  }
});

test('what a browser has already is not sent again', async ({ base }) => {
  for (const path of ['/openapi.json', '/docs', '/docs/swagger-ui.css']) {
    const first = await fetch(base + path);
    const etag = first.headers.get('etag') ?? '';
    await first.arrayBuffer();
    assert.is(first.headers.get('cache-control'), 'no-cache');
    assert.is(await statusOf(base, path, { 'If-None-Match': etag }), 304, path);
    assert.is(await statusOf(base, path, { 'If-None-Match': '"another"' }), 200, path);
  }
});

test('everybody is sent the same bytes: slow readers of a large file take no memory each', async () => {
  const middleware = docs(() => document);
  const sent = async (path: string, coding: string): Promise<unknown> => {
    const ctx = {
      path,
      method: 'GET',
      state: {},
      set: () => undefined,
      vary: () => undefined,
      acceptsEncodings: () => coding,
      body: undefined as unknown,
    };
    await middleware(ctx as unknown as Parameters<typeof middleware>[0], async () => undefined);
    return ctx.body;
  };
  for (const path of ['/docs/swagger-ui-bundle.js', '/openapi.json'])
    for (const coding of ['identity', 'br', 'gzip']) {
      const first = await sent(path, coding);
      assert.ok(Buffer.isBuffer(first) && first.length > 0);
      assert.ok((await sent(path, coding)) === first, `${path} ${coding}`);
    }
});

test('HEAD is answered like GET, without the body', async ({ base }) => {
  const response = await fetch(`${base}/docs/swagger-ui-bundle.js`, { method: 'HEAD' });
  assert.is(response.status, 200);
  assert.ok(Number(response.headers.get('content-length')) > 100_000);
  assert.is(await response.text(), '');
});

test('the page allows nothing inline and nothing from elsewhere', async ({ base }) => {
  const response = await fetch(`${base}/docs`);
  const policy = response.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.not.match(policy, /unsafe|https:|\*/);
  assert.not.match(await response.text(), /(?:src|href)="(?:https?:|\/\/)/);
});

test('a trailing slash leads to the page', async ({ base }) => {
  const head = await fetch(`${base}/docs/`, { method: 'HEAD', redirect: 'manual' });
  const response = await fetch(`${base}/docs/`, { redirect: 'manual' });
  assert.equal([head.status, head.headers.get('location')], [response.status, response.headers.get('location')]);
  assert.is(response.status, 302);
  assert.is(new URL(response.headers.get('location') ?? '', `${base}/docs/`).pathname, '/docs');
});

test('another method is refused', async ({ base }) => {
  for (const path of ['/docs', '/openapi.json']) {
    const response = await fetch(base + path, { method: 'POST', body: '{}' });
    assert.is(response.status, 405);
    assert.is(response.headers.get('allow'), 'GET, HEAD');
    await response.arrayBuffer();
  }
});

test('no other file is served, however it is asked for', async ({ base }) => {
  const paths = [
    '/docs/package.json',
    '/docs/../package.json',
    '/docs/..%2fpackage.json',
    '/docs/%2e%2e/package.json',
    '/docs//swagger-ui.css',
    '/docs/swagger-ui.css%00',
    '/docs/__proto__',
    '/docs/constructor',
    '/docs/\\..\\package.json',
  ];
  for (const path of paths) assert.is(await statusOf(base, path), 404, path);
});

if (CHROMIUM === undefined) {
  console.log('skipped: the page shows every operation in a browser: no Chromium on this machine');
  test.skip('the page shows every operation in a browser', () => {});
} else {
  test('the page shows every operation in a browser without foreign requests', async ({ base }) => {
    await onPage(async (page) => {
      const elsewhere: string[] = [];
      const faults: string[] = [];
      page.on('request', (requested) => {
        if (!requested.url().startsWith(base) && !requested.url().startsWith('data:')) elsewhere.push(requested.url());
      });
      page.on('console', (message) => {
        if (message.type() === 'error') faults.push(message.text());
      });
      page.on('pageerror', (error) => faults.push(error.message));
      await page.goto(`${base}/docs`);
      await page.waitForSelector('.opblock-summary-path');
      const shown = (await page.locator('.opblock-summary-path').allInnerTexts())
        .map((text) => text.replaceAll(/\u200b|\s/g, ''))
        .sort();
      assert.equal(shown, ['/api/v2/brands', '/api/v2/gifts/{giftId}']);
      await page.locator('.opblock-summary').first().click();
      await page.waitForSelector('.responses-inner');
      assert.match(await page.locator('.opblock-body').first().innerText(), /Authentication failed\./);
      assert.equal(elsewhere, []);
      assert.equal(faults, []);
    });
  });
}

test.run();
