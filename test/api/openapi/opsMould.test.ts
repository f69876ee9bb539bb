/** All operations under `/ops` are of one mould: whoever knows one knows the names of the others. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { reasonProperty } from '../../../src/api/ops/frame.js';
import { limitParameter } from '../../../src/api/ops/nextPages.js';
import { type Json, type Service, startService } from '../../support/service/service.js';

const test = suite('the mould of /ops');
let service: Service;
let document: Json;
test.before(async () => {
  service = await startService();
  document = (await service.ask('GET', '/openapi.json')).json as Json;
});
test.after(() => service.close());

interface Operation {
  readonly name: string;
  readonly method: string;
  readonly query: ReadonlyMap<string, Json>;
  /** Schemas of body and answer in JSON; empty: there is none. */
  readonly body: Json;
  readonly answer: Json;
}

/** The value, or what its `$ref` names. */
function resolved(value: Json): Json {
  const ref = value?.['$ref'] as string | undefined;
  return ref === undefined
    ? value
    : resolved(
        ref
          .slice(2)
          .split('/')
          .reduce((at: Json, key) => at[key] as Json, document),
      );
}
const jsonSchema = (holder: Json): Json => resolved(resolved(holder)?.content?.['application/json']?.schema) ?? {};

function operations(): Operation[] {
  return Object.entries(document['paths'] as Record<string, Record<string, Json>>)
    .filter(([path]) => path.startsWith('/ops/'))
    .flatMap(([path, methods]) =>
      Object.entries(methods)
        .filter(([, { operationId }]) => operationId !== undefined)
        .map(([method, operation]) => {
          const parameters = ((operation['parameters'] ?? []) as Json[]).map((one) => resolved(one));
          const answers = Object.entries(operation['responses'] as Record<string, Json>);
          return {
            name: `${method.toUpperCase()} ${path}`,
            method,
            query: new Map(
              parameters.filter((one) => one['in'] === 'query').map((one) => [one['name'] as string, one]),
            ),
            body: jsonSchema(operation['requestBody']),
            answer: jsonSchema(answers.find(([status]) => status === '200' || status === '202')?.[1]),
          };
        }),
    );
}

const namesOf = (faults: readonly Operation[]): string[] => faults.map(({ name }) => name);
const { 'x-errors': _, ...REASON } = reasonProperty;

test('there are operations to look at', () => {
  assert.ok(operations().length > 40, `${operations().length}`);
});

test('whatever changes something requires a reason, in the same words', () => {
  const posts = operations().filter(({ method }) => method === 'post');
  assert.deepEqual(namesOf(posts.filter(({ body }) => !((body.required ?? []) as string[]).includes('reason'))), []);
  for (const { name, body } of posts) assert.deepEqual(body.properties?.reason, REASON, name);
  assert.deepEqual(namesOf(operations().filter(({ method }) => method !== 'post' && method !== 'get')), []);
});

test('a reason for personal fields is the same parameter everywhere', () => {
  for (const { name, query } of operations()) {
    const reason = query.get('reason');
    if (reason === undefined) assert.ok(!query.has('personal'), name);
    else {
      const { description: _d, ...schema } = reason.schema;
      const { description: _e, ...expected } = REASON;
      assert.deepEqual(schema, expected, name);
      assert.ok(reason.required === true || query.has('personal'), name);
    }
  }
});

test('a span of time is from and to, as days or times of a zone', () => {
  for (const { name, query } of operations()) {
    assert.equal(query.has('from'), query.has('to'), name);
    if (!query.has('from')) continue;
    assert.ok(query.has('time_zone'), name);
    for (const one of ['from', 'to'])
      assert.deepEqual(
        { ...query.get(one).schema, description: '' },
        { type: 'string', maxLength: 64, description: '' },
        `${name}: ${one}`,
      );
  }
});

test('a list in pages has limit, after and next', () => {
  for (const { name, query, answer } of operations()) {
    assert.equal(query.has('limit'), query.has('after') && name !== 'GET /ops/totals', name);
    if (!query.has('limit')) continue;
    const { description: _d, ...limit } = limitParameter.limit;
    assert.deepEqual(
      { ...query.get('limit').schema, description: undefined },
      { ...limit, description: undefined },
      name,
    );
    assert.ok('next' in answer.properties, name);
  }
});

test('an answer in JSON has its data under data', () => {
  const others = operations().filter(
    ({ answer }) => answer.properties !== undefined && answer.properties.data === undefined,
  );
  assert.deepEqual(namesOf(others), ['GET /ops/gifts/{giftId}/proof'], 'a bundle of evidence has its own format');
});

test('a number is phone_number, asked for and answered', () => {
  const found = new Set<string>();
  const look = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, inner] of Object.entries(value)) {
      if (key === 'properties')
        for (const name of Object.keys(inner as object)) if (name.includes('phone')) found.add(name);
      look(inner);
    }
  };
  for (const { query, body, answer } of operations()) {
    for (const name of query.keys()) if (name.includes('phone')) found.add(name);
    look([body, answer]);
  }
  assert.deepEqual([...found], ['phone_number']);
});

test.run();
