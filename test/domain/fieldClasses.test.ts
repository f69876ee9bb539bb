import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ACCOUNT_KINDS } from '../../src/domain/account.js';
import { CATALOGUE_KINDS } from '../../src/domain/catalogue.js';
import { entryEventType } from '../../src/domain/entry.js';
import { FIELD_CLASSES } from '../../src/domain/fieldClasses.js';

const sources = fileURLToPath(new URL('../../../src/domain/', import.meta.url));
const test = suite('domain/fieldClasses');

test('every event type of the domain has its entry, and no other', () => {
  const declared = readdirSync(sources)
    .flatMap((file) => [...readFileSync(`${sources}${file}`, 'utf8').matchAll(/DomainEvent<\s*'(\w+)'/g)])
    .map((match) => match[1] ?? '');
  const entries = [...CATALOGUE_KINDS, ...ACCOUNT_KINDS].flatMap((kind) => [entryEventType(kind, 'Added'), entryEventType(kind, 'Changed'), entryEventType(kind, 'Retired')]);
  assert.ok(declared.includes('GiftsPurchased'));
  assert.equal(Object.keys(FIELD_CLASSES).toSorted(), [...declared, ...entries].toSorted());
});

test('no field is both secret and personal', () => {
  for (const [type, { secret, personal }] of Object.entries<{ secret: readonly string[]; personal: readonly string[] }>(FIELD_CLASSES)) {
    assert.equal(secret.filter((path) => personal.includes(path)), [], type);
  }
});

test('the doc comment of each event type names its secret fields', () => {
  const text = readdirSync(sources).filter((file) => file !== 'fieldClasses.ts').map((file) => readFileSync(`${sources}${file}`, 'utf8')).join('\n');
  for (const { secret } of Object.values<{ secret: readonly string[] }>(FIELD_CLASSES)) {
    for (const path of secret) assert.match(text, new RegExp(`Secret[^.]*\`${path}\``), path);
  }
});

test.run();
