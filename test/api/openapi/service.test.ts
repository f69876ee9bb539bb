import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { tileExample } from '../../../src/api/catalogue/schemas.js';
import { tilesOf } from '../../../src/api/catalogue/tileGrid.js';
import { startApp, type App } from '../../../src/service/app.js';
import { loadConfig } from '../../../src/service/config.js';
import { createLogger } from '../../../src/lib/logging/logger.js';
import type { Json } from '../../support/service/service.js';
import { faultsOf, operationsOf, resolved } from './check.js';

interface Described {
  content: Record<string, { schema: { type?: string; $ref?: string } }>;
}

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

test('lets generators make useful types: every array, object and alternative has its type', ({ document }) => {
  const silent: string[] = [];
  const look = (value: unknown, path: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { type } = value as { type?: unknown };
    if (type === 'array' && !('items' in value)) silent.push(path);
    if (('const' in value || Array.isArray((value as { enum?: unknown }).enum)) && type === undefined)
      silent.push(path);
    if (
      type === 'object' &&
      !['properties', 'additionalProperties', 'anyOf', 'oneOf', 'allOf'].some((key) => key in value)
    )
      silent.push(path);
    for (const [key, inner] of Object.entries(value))
      if (!['example', 'examples', 'not'].includes(key)) look(inner, `${path}/${key}`);
  };
  look(document, '');
  assert.equal(silent, []);
});

test('describes 429 and its headers for every operation that a client or user calls', ({ document }) => {
  const limited = operationsOf(document).filter(
    ({ path, operation }) =>
      path.startsWith('/g/') ||
      (path.startsWith('/api/') && (operation['security'] as object[]).every((one) => Object.keys(one).length > 0)),
  );
  assert.ok(limited.length > 25);
  for (const { method, path, operation } of limited) {
    const { headers } = (operation['responses'] as Record<string, { headers: Record<string, unknown> }>)['429'] ?? {};
    for (const name of ['Retry-After', 'RateLimit', 'RateLimit-Policy'])
      assert.ok(headers?.[name] !== undefined, `${method} ${path}: ${name}`);
  }
});

test('every whole number of a query has its bounds, every default is described', ({ document }) => {
  const parameters = Object.values(
    document['paths'] as Record<
      string,
      Record<string, { parameters?: { name: string; in: string; schema: Record<string, unknown> }[] }>
    >,
  )
    .flatMap((item) => Object.values(item))
    .flatMap((operation) => operation.parameters ?? [])
    .filter((parameter) => parameter.in === 'query');
  const numbers = parameters.filter(({ schema }) => schema['type'] === 'integer');
  assert.ok(numbers.length > 5);
  assert.equal(
    numbers
      .filter(({ schema }) => schema['minimum'] === undefined || schema['maximum'] === undefined)
      .map(({ name }) => name),
    [],
  );
  const personal = parameters.filter(({ name }) => name === 'personal');
  assert.ok(personal.length > 0);
  for (const { schema } of personal)
    assert.equal(schema, { type: ['boolean', 'integer'], default: false, enum: [true, false, 1, 0] });
});

test('a body of the token endpoint is exactly one of its three grants', ({ document }) => {
  const { schemas } = document['components'] as {
    schemas: Record<
      string,
      { additionalProperties?: unknown; required?: string[]; properties?: { grant_type?: { const?: string } } }
    >;
  };
  const body = (
    document as {
      paths: {
        '/oauth/token': {
          post: { requestBody: { content: { 'application/json': { schema: { oneOf: { $ref: string }[] } } } } };
        };
      };
    }
  ).paths['/oauth/token'].post.requestBody;
  const grants = resolved(document, body.content['application/json'].schema).oneOf.map(
    ({ $ref }) => schemas[$ref.split('/').at(-1) ?? ''],
  );
  assert.equal(
    grants.map((grant) => [grant?.properties?.grant_type?.const, grant?.required?.length, grant?.additionalProperties]),
    [
      ['password', 3, undefined],
      ['refresh_token', 2, undefined],
      ['client_credentials', 1, undefined],
    ],
  );
});

test('every endpoint of the contract stands in it', ({ document }) => {
  assert.equal(
    operationsOf(document)
      .map(({ method, path }) => `${method} ${path.replaceAll(/\{\w+\}/g, '{}')}`)
      .filter((operation) => !/ \/(ops|console)\//.test(operation))
      .sort(),
    [
      'DELETE /api/v2/webhook-endpoints/{}',
      'GET /api/v2/brands',
      'GET /api/v2/events',
      'GET /api/v2/gifts',
      'GET /api/v2/gifts/{}',
      'GET /api/v2/gifts/{}/product/adjustment-codes',
      'GET /api/v2/gifts/{}/redemptions',
      'GET /api/v2/gifts/{}/redemptions/{}/proof',
      'GET /api/v2/gifts/{}/voucher/claimed',
      'GET /api/v2/gifts/{}/voucher/options',
      'GET /api/v2/idempotency-keys/{}',
      'GET /api/v2/me',
      'GET /api/v2/payment-methods',
      'GET /api/v2/product-tags/categories',
      'GET /api/v2/product-tags/categories/{}',
      'GET /api/v2/products',
      'GET /api/v2/products/{}',
      'GET /api/v2/redemptions',
      'GET /api/v2/requests',
      'GET /api/v2/tiles/{}',
      'GET /api/v2/transactions',
      'GET /api/v2/transactions/{}',
      'GET /api/v2/transactions/{}/gifts',
      'GET /api/v2/webhook-endpoints',
      'GET /api/v2/webhook-endpoints/{}',
      'GET /api/v2/webhook-endpoints/{}/attempts',
      'GET /checkpoint',
      'GET /g/{}',
      'GET /tile/entries/{}',
      'GET /tile/entries/{}/{}',
      'GET /tile/entries/{}/{}/{}',
      'GET /tile/entries/{}/{}/{}/{}',
      'GET /tile/{}/{}',
      'GET /tile/{}/{}/{}',
      'GET /tile/{}/{}/{}/{}',
      'GET /tile/{}/{}/{}/{}/{}',
      'PATCH /api/v2/gifts/{}/redemptions/{}',
      'PATCH /api/v2/transactions/{}',
      'PATCH /api/v2/webhook-endpoints/{}',
      'POST /api/v2/gifts/{}/claim',
      'POST /api/v2/gifts/{}/redemptions',
      'POST /api/v2/gifts/{}/voucher',
      'POST /api/v2/gifts/{}/voucher/claimed',
      'POST /api/v2/transactions',
      'POST /api/v2/webhook-endpoints',
      'POST /api/v2/webhook-endpoints/{}/ping',
      'POST /api/v2/webhook-endpoints/{}/recover',
      'POST /api/v2/webhook-endpoints/{}/resend',
      'POST /api/v2/webhook-endpoints/{}/secret',
      'POST /oauth/revoke',
      'POST /oauth/token',
    ],
  );
});

test('has no route of a sandbox where it is none', async ({ app, document }) => {
  for (const [method, path] of [
    ['GET', 'clock'],
    ['POST', 'clock'],
    ['POST', 'reset'],
    ['POST', 'payment-methods'],
    ['POST', 'transactions/t/authentication'],
  ] as const)
    assert.is((await fetch(`${app?.url}/sandbox/${path}`, { method })).status, 404);
  assert.not.match((document['info'] as { description: string }).description, /sandbox/i);
});

test('its webhooks have the bodies of the feed’s events, and what a receiver checks', ({ document }) => {
  const { webhooks } = document as {
    webhooks: Record<
      string,
      {
        post: {
          parameters: { name: string }[];
          requestBody: { content: Record<string, { schema: { $ref: string } }> };
        };
      }
    >;
  };
  const bodies = Object.entries(webhooks).map(([name, { post }]) => [
    name,
    post.requestBody.content['application/json']?.schema.$ref,
  ]);
  assert.equal(bodies, [
    ['event', '#/components/schemas/WebhookEvent'],
    ['ping', '#/components/schemas/WebhookPing'],
  ]);
  for (const { post } of Object.values(webhooks))
    assert.equal(
      post.parameters.map(({ name }) => name),
      ['webhook-id', 'webhook-timestamp', 'webhook-signature'],
    );
});

test('every endpoint under /ops names the role that its caller needs', ({ document }) => {
  const ops = operationsOf(document).filter(({ path }) => path.startsWith('/ops/'));
  assert.ok(ops.some(({ method, path }) => `${method} ${path}` === 'GET /ops/access'));
  for (const { method, path, operation } of ops) {
    assert.match(
      String(operation['description']),
      /For users with the role `(support|auditor)`( or `\w+`)?\.$/,
      `${method} ${path}`,
    );
    assert.ok('403' in (operation['responses'] as object), `${method} ${path}`);
  }
});

test('gives every operation a text, examples of answer and body, and meanings of parameters', ({ document }) => {
  for (const { method, path, operation } of operationsOf(document)) {
    const name = `${method} ${path}`;
    const { summary, parameters, requestBody, responses } = operation as {
      summary?: string;
      parameters: readonly { name?: string; description?: string; $ref?: string }[];
      requestBody?: { content: Record<string, { example?: unknown }> };
      responses: Record<string, { content: Record<string, { example?: unknown }> }>;
    };
    assert.ok(summary, name);
    for (const parameter of parameters)
      assert.ok(parameter.$ref ?? parameter.description, `${name}: ${parameter.name}`);
    if (requestBody !== undefined)
      assert.ok(requestBody.content['application/json']?.example, `${name}: no example of the body`);
    for (const [status, { content }] of Object.entries(responses)) {
      if (status.startsWith('2') && content['application/json'] !== undefined)
        assert.ok(content['application/json'].example, `${name}: no example of ${status}`);
    }
  }
});

test("has an example that the service would answer: a tile's bounds", () => {
  const [z = 0, x = 0, y = 0] = tileExample.id.split('/').map(Number);
  assert.equal(tilesOf({ z, west: x, columns: 1, top: y, rows: 1 }), [
    { id: tileExample.id, bounds: tileExample.bounds },
  ]);
  const { west, south, east, north } = tileExample.bounds;
  for (const { longitude, latitude } of tileExample.pins)
    assert.ok(west <= longitude && longitude < east && south <= latitude && latitude <= north);
});

test('the example of an answer is one to the example of its request', ({ document }) => {
  const examplesOf = (path: string): { readonly requested: Json; readonly answered: Json } => {
    const operation = (document as Json).paths[path].post;
    const [[, answer]] = Object.entries(operation.responses as Record<string, Json>).filter(([status]) =>
      status.startsWith('2'),
    ) as [[string, Json]];
    return {
      requested: operation.requestBody?.content['application/json'].example,
      answered: answer.content['application/json'].example,
    };
  };
  const bought = examplesOf('/api/v2/transactions');
  const { data, embedded } = bought.answered;
  const { purchase } = bought.requested;
  assert.is(data.gifts.length, purchase.receivers.length);
  assert.is(data.retail, ((embedded.products[0].sale_price * purchase.receivers.length) / 100).toFixed(2));
  assert.equal(
    embedded.gifts.map((gift: Json) => [gift.id, gift.receiver_id]),
    purchase.receivers.map((receiver: Json, at: number) => [data.gifts[at], receiver.user_id]),
  );
  assert.is(embedded.messages[0].message, purchase.message);
  const vouchered = examplesOf('/api/v2/gifts/{giftId}/voucher');
  assert.is(vouchered.answered.data.voucher_id, vouchered.answered.embedded.vouchers[0].id);
  // None of them can have been redeemed by then.
  for (const gift of [
    ...embedded.gifts,
    vouchered.answered.data,
    examplesOf('/api/v2/gifts/{giftId}/claim').answered.data,
  ])
    assert.equal([gift.gift_status, gift.status_code, gift.status, gift.redeemed_id], ['sent', 'SE', 5, null]);
  const token = examplesOf('/oauth/token');
  assert.equal([token.requested.grant_type, 'refresh_token' in token.answered], ['client_credentials', false]);
});

test('it is said when `embedded` is there', ({ document }) => {
  let always = 0;
  for (const { method, path, operation } of operationsOf(document)) {
    for (const { content } of Object.values(
      operation['responses'] as Record<
        string,
        {
          content?: Record<
            string,
            { schema?: { properties?: { embedded?: { description?: string } }; required?: string[] } }
          >;
        }
      >,
    )) {
      const { properties, required = [] } = resolved(document, content?.['application/json']?.schema ?? {});
      if (properties?.embedded === undefined || path.startsWith('/ops/')) continue;
      if (required.includes('embedded')) always += 1;
      assert.is(
        /absent when/.test(properties.embedded.description ?? 'absent when'),
        !required.includes('embedded'),
        `${method} ${path}: ${properties.embedded.description}`,
      );
    }
  }
  assert.is(always, 5);
});

test("clients made from it have names to go by, none made of numbers or of a generator's own", ({ document }) => {
  const unnamed = operationsOf(document).flatMap(({ operation }) => {
    const { operationId, requestBody, responses } = operation as {
      operationId: string;
      requestBody?: Described;
      responses: Record<string, Described>;
    };
    const parts = [
      ...(requestBody === undefined ? [] : [requestBody]),
      ...Object.entries(responses)
        .filter(([status]) => status < '300')
        .map(([, one]) => one),
    ];
    return parts
      .flatMap(({ content }) => Object.values(content))
      .filter(({ schema }) => schema.type !== 'string' && schema.$ref === undefined)
      .map(() => operationId);
  });
  assert.equal(unnamed, []);
});

test('every group has a text', ({ document }) => {
  for (const { name, description } of document['tags'] as { name: string; description?: string }[])
    assert.ok(description, name);
});

test.run();
