/** The documents of the API are whole: each message that a caller can get, and each endpoint that a client can call. */
import { readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ERRORS } from '../../src/domain/errors.js';
import { type Json, startService } from '../support/service/service.js';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));
const test = suite('docs: contract');

const textOf = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const INDEX = textOf('docs/api/README.md');
const PAGES = readdirSync(join(ROOT, 'docs/api'))
  .filter((name) => name !== 'README.md')
  .map((name) => textOf(`docs/api/${name}`))
  .join('\n');
/** Without the table of all codes, which is held against the code by a test of its own. */
const RULES = (PAGES + textOf('docs/support.md') + textOf('docs/console.md')).replaceAll(
  /^\| `\w+` \| \d{3} \|.*$/gm,
  '',
);

test('every message of an error is where its endpoint is described, to the letter', () => {
  const messages = Object.values(ERRORS).flatMap(([, message]) => (message === '' ? [] : [message]));
  assert.ok(messages.length > 40);
  assert.equal(
    messages.filter((message) => !RULES.includes(`\`${message}\``)),
    [],
  );
});

test('every endpoint of clients is in a page of the API and in its index, and no other', async () => {
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
  const writtenIn = (text: string): string[] => [
    ...new Set(
      [...text.matchAll(/`(GET|POST|PATCH|DELETE) (\/(?:api|oauth)\/[^`\s?]+)/g)].map(
        ([, method = '', path = '']) => `${method} ${shape(path)}`,
      ),
    ),
  ];
  assert.ok(served.length > 15);
  assert.equal(writtenIn(PAGES).toSorted(), served.toSorted());
  // The index names the first of the webhook endpoints for all of them.
  const below = /\/webhook-endpoints\b/;
  const indexed = served.filter((one) => !below.test(one));
  assert.equal(
    writtenIn(INDEX)
      .filter((one) => !below.test(one))
      .toSorted(),
    indexed.toSorted(),
  );
});

test.run();
