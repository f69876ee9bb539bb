import { Validator } from '@seriousme/openapi-schema-validator';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { describedErrors, openApiDocument } from '../../../src/api/openapi/openapi.js';
import type { Route, Schema } from '../../../src/api/pipeline/route.js';
import { answerChecker, faultsOf, operationsOf, relationsOf } from './check.js';

const test = suite('the API description');

const INFO = { version: '1.2.3', publicUrl: 'https://gifts.example' };
const handle = async (): Promise<{ status: number; body: object }> => ({ status: 200, body: {} });
const pet: Schema = {
  title: 'Pet',
  type: 'object',
  required: ['id'],
  additionalProperties: false,
  properties: { id: { type: 'string' }, title: { type: 'string' } },
};
const petAnswer: Schema = { type: 'object', required: ['data'], properties: { data: pet } };

const getPet: Route = {
  method: 'GET',
  path: '/api/v2/pets/:petId',
  operation: 'getPet',
  summary: 'One pet',
  description: 'By its id.',
  tag: 'Catalogue',
  caller: 'any',
  embeds: ['owner', 'owner.house'],
  params: { petId: "The pet's id." },
  query: {
    type: 'object',
    required: ['age'],
    properties: {
      age: { type: 'integer', minimum: 0, description: 'In years.' },
      colour: { type: 'array', items: { type: 'string' } },
    },
  },
  answers: [
    {
      status: 200,
      description: 'The pet.',
      schema: petAnswer,
      example: { data: { id: 'p1' } },
      headers: { Location: 'Where it is.' },
    },
  ],
  errors: ['product_not_found', 'gift_expired'],
  handle,
};
const renamePet: Route = {
  method: 'PATCH',
  path: '/api/v2/pets/:id',
  operation: 'renamePet',
  summary: 'Rename a pet',
  tag: 'Zoo',
  caller: 'user',
  body: {
    type: 'object',
    required: ['name'],
    additionalProperties: false,
    properties: {
      name: { type: 'string', 'x-errors': { type: 'name must be a string' }, 'x-message': 'Invalid name.' },
      pet,
    },
  },
  bodyExample: { name: 'Rex' },
  answers: [{ status: 200, description: 'Renamed.', schema: petAnswer }],
  errors: ['too_many_requests', 'payment_declined'],
  errorHeaders: { payment_declined: { Location: 'What was bought.' } },
  handle,
};
const token: Route = {
  method: 'POST',
  path: '/oauth/token',
  operation: 'getToken',
  summary: 'A token',
  tag: 'Tokens',
  caller: 'none',
  formBody: true,
  bodyOptional: true,
  body: { type: 'object', properties: { grant_type: { type: 'string' } } },
  answers: [{ status: 200, description: 'A token.', schema: { type: 'object' } }],
  errors: ['unsupported_grant_type'],
  handle,
};
const page: Route = {
  method: 'GET',
  path: '/g/:shortcode',
  operation: 'showPage',
  summary: 'The page',
  tag: 'Gifts',
  caller: 'none',
  giftParam: 'shortcode',
  answers: [{ status: 200, description: 'The page.', contentType: 'text/html' }],
  errors: [],
  handle,
};
const routes = [getPet, renamePet, token, page];

type Json = Record<string, never>;
/** Follows keys into a description. */
function at(value: unknown, ...keys: readonly (string | number)[]): unknown {
  return keys.reduce<unknown>((inner, key) => (inner as Json)[key], value);
}

const operationOf = (document: object, method: string, path: string): unknown => at(document, 'paths', path, method);
const namesOf = (parameters: unknown): string[] =>
  (parameters as { name?: string; $ref?: string }[]).map(({ name, $ref }) => name ?? $ref?.replace(/.*\//, '#') ?? '');

test('it is valid OpenAPI 3.1', async () => {
  const validator = new Validator();
  const result = await validator.validate(
    JSON.parse(JSON.stringify(openApiDocument(routes, INFO))) as Record<string, unknown>,
  );
  assert.is(result.valid, true, JSON.stringify(result.errors));
  assert.is(validator.version, '3.1');
  const broken = { ...openApiDocument(routes, INFO), servers: [{ address: 'nowhere' }] };
  assert.is((await new Validator().validate(broken)).valid, false);
});

test('every reference leads somewhere, every schema compiles, every example holds', () => {
  assert.equal(faultsOf(openApiDocument(routes, INFO)), []);
  const wrong: Route = { ...page, answers: [{ status: 200, description: '', schema: pet, example: { id: 1 } }] };
  assert.match(faultsOf(openApiDocument([wrong], INFO)).join(), /breaks its schema/);
  const { components, ...rest } = openApiDocument(routes, INFO) as { components: Record<string, unknown> };
  assert.throws(() => faultsOf({ ...rest, components: { ...components, schemas: {} } }), /can't resolve reference/);
  assert.match(faultsOf({ ...rest, components: { ...components, parameters: {} } }).join(), /RequestId leads nowhere/);
});

test('every route is an operation with a name of its own', () => {
  const operations = operationsOf(openApiDocument(routes, INFO));
  assert.equal(operations.map(({ method, path }) => `${method} ${path}`).sort(), [
    'GET /api/v2/pets/{petId}',
    'GET /g/{shortcode}',
    'PATCH /api/v2/pets/{petId}',
    'POST /oauth/token',
  ]);
  assert.equal(operations.map(({ operation }) => String(operation['operationId'])).sort(), [
    'getPet',
    'getToken',
    'renamePet',
    'showPage',
  ]);
});

test('two operations of one name are refused', () => {
  assert.throws(() => openApiDocument([getPet, getPet], INFO), /two routes are called getPet/);
});

test('parameters stand with their place, brackets and meaning', () => {
  const operation = operationOf(openApiDocument(routes, INFO), 'get', '/api/v2/pets/{petId}');
  const parameters = at(operation, 'parameters') as Record<string, unknown>[];
  assert.equal(namesOf(parameters), ['petId', 'age', 'colour[]', 'embed[]', '#RequestId', '#GiftPosition']);
  assert.equal(parameters[0], {
    name: 'petId',
    in: 'path',
    required: true,
    description: "The pet's id.",
    schema: { type: 'string' },
  });
  assert.equal(parameters[1], {
    name: 'age',
    in: 'query',
    required: true,
    description: 'In years.',
    schema: { type: 'integer', minimum: 0 },
  });
  assert.equal(parameters[2], {
    name: 'colour[]',
    in: 'query',
    required: false,
    style: 'form',
    explode: true,
    schema: { type: 'array', items: { type: 'string' } },
  });
  assert.equal(at(parameters[3], 'schema', 'items'), { $ref: '#/components/schemas/GetPetEmbed' });
  assert.equal(relationsOf(openApiDocument(routes, INFO), operation as Readonly<Record<string, unknown>>), [
    'owner',
    'owner.house',
  ]);
});

test('a path that two routes spell differently has one spelling', () => {
  const parameters = at(
    operationOf(openApiDocument([getPet, renamePet], INFO), 'patch', '/api/v2/pets/{petId}'),
    'parameters',
  );
  assert.equal(namesOf(parameters), ['petId', '#RequestId', '#GiftPosition', '#IdempotencyKey']);
});

test('bodies stand with their example, as a form where that is taken', () => {
  const document = openApiDocument(routes, INFO);
  const rename = at(operationOf(document, 'patch', '/api/v2/pets/{petId}'), 'requestBody');
  assert.is(at(rename, 'required'), true);
  assert.equal(Object.keys(at(rename, 'content') as object), ['application/json']);
  assert.equal(at(rename, 'content', 'application/json', 'example'), { name: 'Rex' });
  const grant = at(operationOf(document, 'post', '/oauth/token'), 'requestBody');
  assert.is(at(grant, 'required'), false);
  assert.equal(Object.keys(at(grant, 'content') as object), ['application/json', 'application/x-www-form-urlencoded']);
  assert.is(at(operationOf(document, 'get', '/g/{shortcode}'), 'requestBody'), undefined);
});

test('who may call is said', () => {
  const document = openApiDocument(routes, INFO);
  assert.equal(at(operationOf(document, 'get', '/api/v2/pets/{petId}'), 'security'), [
    { bearer: [] },
    { clientCredentials: [] },
  ]);
  assert.equal(at(operationOf(document, 'patch', '/api/v2/pets/{petId}'), 'security'), [{ bearer: [] }]);
  assert.equal(at(operationOf(document, 'post', '/oauth/token'), 'security'), [{}, { client: [] }, { bearer: [] }]);
  assert.equal(at(operationOf(document, 'get', '/g/{shortcode}'), 'security'), [{}]);
});

test('answers stand with schema, example and headers', () => {
  const document = openApiDocument(routes, INFO);
  const one = at(operationOf(document, 'get', '/api/v2/pets/{petId}'), 'responses', '200');
  assert.equal(at(one, 'content', 'application/json'), {
    schema: { $ref: '#/components/schemas/GetPetAnswer' },
    example: { data: { id: 'p1' } },
  });
  assert.equal(at(document, 'components', 'schemas', 'GetPetAnswer'), {
    title: 'GetPetAnswer',
    type: 'object',
    required: ['data'],
    properties: { data: { $ref: '#/components/schemas/Pet' } },
  });
  assert.equal(Object.keys(at(one, 'headers') as object), [
    'X-Request-Id',
    'RateLimit',
    'RateLimit-Policy',
    'Location',
  ]);
  const renamed = at(operationOf(document, 'patch', '/api/v2/pets/{petId}'), 'responses', '200');
  assert.equal(Object.keys(at(renamed, 'headers') as object), [
    'X-Request-Id',
    'Cache-Control',
    'RateLimit',
    'RateLimit-Policy',
    'Gift-Position',
    'Idempotent-Replayed',
  ]);
  assert.equal(at(operationOf(document, 'get', '/g/{shortcode}'), 'responses', '200', 'content'), {
    'text/html': { schema: { type: 'string' } },
  });
});

test('every error stands under its status with its exact message', () => {
  const responses = at(
    operationOf(openApiDocument(routes, INFO), 'patch', '/api/v2/pets/{petId}'),
    'responses',
  ) as Record<string, unknown>;
  assert.equal(Object.keys(responses), [
    '200',
    '400',
    '401',
    '402',
    '403',
    '409',
    '413',
    '415',
    '422',
    '429',
    '500',
    '503',
  ]);
  assert.equal(at(responses, '422', 'content', 'application/json', 'examples'), {
    schema: { value: { error: 'name must be a string' } },
    schema_2: { value: { error: 'Invalid name.' } },
    unknown_embed: { value: { error: 'Unknown embed: nonsense.' } },
    idempotency_key_reused: { value: { error: 'Idempotency key already used with another request.' } },
  });
  for (const name of ['Retry-After', 'RateLimit', 'RateLimit-Policy'])
    assert.ok(name in (at(responses, '429', 'headers') as object), name);
  assert.ok('WWW-Authenticate' in (at(responses, '401', 'headers') as object));
  assert.ok('Idempotent-Replayed' in (at(responses, '402', 'headers') as object));
  assert.not.ok('Idempotent-Replayed' in (at(responses, '400', 'headers') as object));
  assert.equal(at(responses, '402', 'headers', 'Location'), {
    description: 'What was bought.',
    schema: { type: 'string' },
  });
  assert.not.ok('Location' in (at(responses, '403', 'headers') as object));
  const gone = at(operationOf(openApiDocument(routes, INFO), 'get', '/api/v2/pets/{petId}'), 'responses', '405');
  assert.ok('Allow' in (at(gone, 'headers') as object));
  assert.is(at(gone, 'description'), '`gift is expired and cannot be redeemed.`');
});

test('a message that is made by rule is shown by an example', () => {
  const schemaOf = (route: Route): string[] =>
    describedErrors(route)
      .filter(({ code }) => code === 'schema')
      .map(({ message }) => message);
  const bare = { ...token, body: { type: 'object', required: ['grant_type'] } };
  assert.equal(schemaOf(bare), ['grant_type is required']);
  assert.equal(schemaOf(token), ['colour is not a known field']);
  assert.equal(schemaOf(getPet), ['age must be a whole number']);
  assert.equal(schemaOf({ ...page, query: { type: 'object', properties: { q: { type: 'string' } } } }), [
    'q must be given only once',
  ]);
  assert.equal(schemaOf({ ...page, query: { type: 'object' } }), ['page must be given only once']);
  assert.equal(
    describedErrors(getPet)
      .filter(({ code }) => code === 'unknown_embed')
      .map(({ message }) => message),
    ['Unknown embed: nonsense.'],
  );
});

test('a schema with a title stands once, under its title', () => {
  const document = openApiDocument(routes, INFO);
  assert.equal(at(document, 'components', 'schemas', 'Pet'), { ...pet });
  const { schema } = at(
    operationOf(document, 'patch', '/api/v2/pets/{petId}'),
    'requestBody',
    'content',
    'application/json',
  ) as { schema: unknown };
  assert.equal(schema, { $ref: '#/components/schemas/RenamePetBody' });
  assert.equal(at(document, 'components', 'schemas', 'RenamePetBody', 'properties'), {
    name: { type: 'string' },
    pet: { $ref: '#/components/schemas/Pet' },
  });
  const other: Route = {
    ...page,
    operation: 'other',
    answers: [{ status: 200, description: '', schema: { ...pet, description: 'another' } }],
  };
  assert.throws(() => openApiDocument([getPet, other], INFO), /two different schemas are called Pet/);
});

test('a title becomes a name that every generator takes', () => {
  const odd: Route = {
    ...page,
    answers: [{ status: 200, description: '', schema: { title: 'refresh_token with HTTP Basic', type: 'object' } }],
  };
  assert.equal(Object.keys(at(openApiDocument([odd], INFO), 'components', 'schemas') as object), [
    'RefreshTokenWithHTTPBasic',
    'Error',
  ]);
});

test('groups stand in the order of reading, those without a text last', () => {
  const tags = at(openApiDocument(routes, INFO), 'tags') as { name: string; description?: string }[];
  assert.equal(
    tags.map(({ name }) => name),
    ['Tokens', 'Catalogue', 'Gifts', 'Zoo'],
  );
  assert.ok(tags[0]?.description);
  assert.is(tags[3]?.description, undefined);
});

test('the service is named with version and address', () => {
  const document = openApiDocument([], INFO);
  assert.is(at(document, 'info', 'version'), '1.2.3');
  assert.equal(at(document, 'servers'), [{ url: 'https://gifts.example' }]);
});

test('an answer is held against the description', () => {
  const faultOf = answerChecker(
    openApiDocument([...routes, { ...getPet, path: '/api/v2/pets/best', operation: 'getBestPet' }], INFO),
  );
  assert.is(
    faultOf({ method: 'GET', path: '/api/v2/pets/p1/?embed[]=owner', status: 200, body: { data: { id: 'p1' } } }),
    undefined,
  );
  assert.match(
    faultOf({ method: 'GET', path: '/api/v2/pets/p1', status: 200, body: { data: { id: 1, colour: 'red' } } }) ?? '',
    /must be string/,
  );
  assert.match(
    faultOf({ method: 'GET', path: '/api/v2/pets/p1', status: 418, body: {} }) ?? '',
    /does not describe 418/,
  );
  assert.match(faultOf({ method: 'GET', path: '/api/v2/cats', status: 200, body: {} }) ?? '', /is not described/);
  assert.is(faultOf({ method: 'GET', path: '/api/v2/cats', status: 404, body: {} }), undefined);
  assert.is(faultOf({ method: 'GET', path: '/g/ABC', status: 200, body: '<p>' }), undefined);
});

test.run();
