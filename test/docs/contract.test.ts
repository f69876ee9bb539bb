/** The documents of the API are whole: each message that a caller can get, and each endpoint that a client can call. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ERRORS } from '../../src/api/pipeline/errors.js';
import { type Json, startService } from '../support/service/service.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: contract');

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const CONTRACT = textOf('docs/contract.md');
const BOTH = CONTRACT + textOf('docs/decisions.md');

test('every message of an error stands in the contract or in a decision, to the letter', () => {
  const messages = Object.values(ERRORS).flatMap(([, message]) => (message === '' ? [] : [message]));
  assert.ok(messages.length > 40);
  assert.equal(
    messages.filter((message) => !BOTH.includes(`\`${message}\``)),
    [],
  );
});

test('every endpoint of clients stands in the contract, and no other', async () => {
  const service = await startService({ split: false });
  let document: Json;
  try {
    document = (await service.ask('GET', '/openapi.json')).json;
  } finally {
    await service.close();
  }
  const shape = (path: string): string => path.replaceAll(/\{[^}]*\}/g, '{}');
  const served = Object.entries(document.paths as Record<string, object>).flatMap(([path, item]) =>
    /^\/(api|oauth)\//.test(path) ? Object.keys(item).map((method) => `${method.toUpperCase()} ${shape(path)}`) : [],
  );
  const written = new Set(
    [...CONTRACT.matchAll(/`(GET|POST|PATCH|DELETE) (\/(?:api|oauth)\/[^`\s]+)`/g)].map(
      ([, method = '', path = '']) => `${method} ${shape(path)}`,
    ),
  );
  assert.ok(served.length > 15);
  assert.equal([...written].toSorted(), served.toSorted());
});

test.run();
