import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startApp, type App } from '../../src/app.js';
import { loadConfig } from '../../src/config.js';
import { createLogger } from '../../src/logger.js';
import { faultsOf, operationsOf } from './openapiCheck.js';

interface Context {
  dir: string;
  app: App | undefined;
  document: Record<string, unknown>;
}

const test = suite<Context>('what the service says of itself', { dir: '', app: undefined, document: {} });

test.before(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'description-'));
  context.app = await startApp(loadConfig({ DATA_DIR: context.dir, PORT: '0' }), createLogger({ level: 'silent' }));
  context.document = (await (await fetch(`${context.app.url}/openapi.json`)).json()) as Record<string, unknown>;
});

test.after(async ({ app, dir }) => {
  await app?.close();
  rmSync(dir, { recursive: true });
});

test('it is valid OpenAPI 3.1, with examples that hold', async ({ document }) => {
  const result = await new Validator().validate(JSON.parse(JSON.stringify(document)) as Record<string, unknown>);
  assert.is(result.valid, true, JSON.stringify(result.errors));
  assert.equal(faultsOf(document), []);
});

test('every endpoint of the contract stands in it', ({ document }) => {
  assert.equal(
    operationsOf(document)
      .map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
      .filter((operation) => !operation.includes(' /ops/'))
      .sort(),
    [
      'GET /api/v2/brands',
      'GET /api/v2/gifts/{}',
      'GET /api/v2/gifts/{}/product/adjustment-codes',
      'GET /api/v2/gifts/{}/voucher/claimed',
      'GET /api/v2/gifts/{}/voucher/options',
      'GET /api/v2/product-tags/categories',
      'GET /api/v2/product-tags/categories/{}',
      'GET /api/v2/products',
      'GET /api/v2/products/{}',
      'GET /api/v2/tiles/{}',
      'GET /api/v2/transactions/{}',
      'GET /api/v2/transactions/{}/gifts',
      'GET /g/{}',
      'PATCH /api/v2/gifts/{}/redemptions/{}',
      'POST /api/v2/gifts/{}/claim',
      'POST /api/v2/gifts/{}/redemptions',
      'POST /api/v2/gifts/{}/voucher',
      'POST /api/v2/gifts/{}/voucher/claimed',
      'POST /api/v2/transactions',
      'POST /oauth/token',
    ],
  );
});

test('every endpoint under /ops names the role that its caller needs', ({ document }) => {
  const ops = operationsOf(document).filter(({ path }) => path.startsWith('/ops/'));
  assert.ok(ops.some(({ method, path }) => `${method} ${path}` === 'GET /ops/access'));
  for (const { method, path, operation } of ops) {
    assert.match(String(operation['description']), /For users with the role `(support|auditor)`( or `\w+`)?\.$/, `${method} ${path}`);
    assert.ok('403' in (operation['responses'] as object), `${method} ${path}`);
  }
});

test('every operation has a text, an example of its answer and of its body, and the meaning of each parameter', ({ document }) => {
  for (const { method, path, operation } of operationsOf(document)) {
    const name = `${method} ${path}`;
    const { summary, parameters, requestBody, responses } = operation as {
      summary?: string;
      parameters: readonly { name?: string; description?: string; $ref?: string }[];
      requestBody?: { content: Record<string, { example?: unknown }> };
      responses: Record<string, { content: Record<string, { example?: unknown }> }>;
    };
    assert.ok(summary, name);
    for (const parameter of parameters) assert.ok(parameter.$ref ?? parameter.description, `${name}: ${parameter.name}`);
    if (requestBody !== undefined) assert.ok(requestBody.content['application/json']?.example, `${name}: no example of the body`);
    for (const [status, { content }] of Object.entries(responses)) {
      if (status.startsWith('2') && content['application/json'] !== undefined) assert.ok(content['application/json'].example, `${name}: no example of ${status}`);
    }
  }
});

test('every group has a text', ({ document }) => {
  for (const { name, description } of document['tags'] as { name: string; description?: string }[]) assert.ok(description, name);
});

test.run();
