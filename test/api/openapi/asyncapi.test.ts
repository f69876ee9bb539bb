/** The description of events: valid, of all types, and true of what is sent. */
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { suite } from 'uvu';
import { ALL_ENTRY_TYPES } from '../../../src/projections/feed/entryTypes.js';
import { eventually } from '../../support/assertions/until.js';
import { buyOne } from '../../support/service/giftFlow.js';
import { type Json, type Service, startService } from '../../support/service/service.js';

const test = suite('the description of events');
const PAGE = 'https://shop.example';
let service: Service;
let document: Json;

test.before(async () => {
  service = await startService({ env: { CORS_ORIGINS: PAGE }, split: false });
  document = (await service.ask('GET', '/asyncapi.json')).json;
});
test.after(() => service.close());

test('is valid AsyncAPI 3.0', () => {
  const require = createRequire(import.meta.url);
  const schema = require('@asyncapi/specs/schemas/3.0.0-without-$id.json') as object;
  const ajv = new Ajv({ strict: false, allErrors: true, logger: false });
  formats.default(ajv);
  const isValid = ajv.compile(schema);
  assert.equal(isValid(document), true, JSON.stringify(isValid.errors?.slice(0, 3)));
  assert.equal(isValid({ ...document, operations: { deliver: { action: 'read' } } }), false);
});

test('has a message for each type of event, which an event of it meets', async () => {
  const messages = Object.values(document.components.messages) as Json[];
  const named = messages.map(({ name }) => name).filter((name) => name !== undefined);
  assert.deepEqual(new Set(named), new Set([...ALL_ENTRY_TYPES, 'event', 'ping']));
  await buyOne(service, 'latte');
  const ajv = new Ajv2020({ strict: false });
  formats.default(ajv as unknown as Ajv);
  const meets = (payload: object, value: unknown): boolean =>
    ajv.validate({ ...payload, components: document.components }, value);
  const payloadOf = (name: string): object => messages.find((one) => one.name === name).payload;
  const ask = async (query: string, accept = 'application/json'): Promise<Json> =>
    (await service.ask('GET', `/api/v2/events?${query}`, { token: await service.clientToken(), headers: { accept } }))
      .json;
  const [created, next] = await eventually(async () => {
    const { data } = await ask('');
    return data.length > 1 && (data as Json[]);
  });
  assert.ok(meets(payloadOf(created.type), created), ajv.errorsText());
  assert.equal(meets(payloadOf(created.type), next), false);
  assert.ok(meets(payloadOf('event'), (await ask('form=webhook')).data[0]), ajv.errorsText());
  const batch = messages.find(({ contentType }) => contentType !== undefined);
  assert.ok(meets(batch.payload, await ask('', batch.contentType)), ajv.errorsText());
});

test('is read by pages of listed origins, as the description of the API is', async () => {
  for (const path of ['/asyncapi.json', '/openapi.json']) {
    const read = await service.ask('GET', path, { headers: { origin: PAGE } });
    assert.deepEqual([read.status, read.headers.get('access-control-allow-origin')], [200, PAGE]);
    const other = await service.ask('GET', path, { headers: { origin: 'https://other.example' } });
    assert.equal(other.headers.get('access-control-allow-origin'), null);
    const preflight = { 'access-control-request-method': 'GET', 'access-control-request-headers': 'x-request-id' };
    const asked = await service.ask('OPTIONS', path, { headers: { origin: PAGE, ...preflight } });
    assert.deepEqual([asked.status, asked.headers.get('access-control-allow-methods')], [204, 'GET, HEAD']);
    assert.equal((await service.ask('OPTIONS', path)).status, 405);
  }
});

test.run();
