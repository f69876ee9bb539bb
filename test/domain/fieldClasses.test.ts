import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { ACCOUNT_KINDS } from '../../src/domain/account.js';
import { CATALOGUE_KINDS } from '../../src/domain/catalogue.js';
import { entryEventTypes } from '../../src/domain/entry.js';
import { FIELD_CLASSES, fieldsApart, type UnlistedSecret } from '../../src/domain/fieldClasses.js';

const folder = fileURLToPath(new URL('../../../src/domain/', import.meta.url));
const sources = readdirSync(folder, { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts'))
  .map((file) => readFileSync(`${folder}${file}`, 'utf8'));
const test = suite('domain/fieldClasses');

test('every event type of the domain has its entry, and no other', () => {
  const declared = sources
    .flatMap((text) => [...text.matchAll(/DomainEvent<\s*'(\w+)'/g)])
    .map((match) => match[1] ?? '');
  const entries = entryEventTypes([...CATALOGUE_KINDS, ...ACCOUNT_KINDS]);
  assert.ok(declared.includes('GiftsPurchased'));
  assert.equal(Object.keys(FIELD_CLASSES).toSorted(), [...declared, ...entries].toSorted());
});

test('classes keyed hashes, seeds and PINs as secret by name', () => {
  // Held by the compiler: a field that no list names makes this no `true`.
  const all: [UnlistedSecret] extends [never] ? true : UnlistedSecret = true;
  assert.ok(all);
});

test('no field is both secret and personal', () => {
  for (const [type, { secret, personal }] of Object.entries<{ secret: readonly string[]; personal: readonly string[] }>(
    FIELD_CLASSES,
  )) {
    assert.equal(
      secret.filter((path) => personal.includes(path)),
      [],
      type,
    );
  }
});

test('a proof may hide each field that holds something secret or personal, or is about other people', () => {
  const apart = fieldsApart();
  const paths = Object.values<{ secret: readonly string[]; personal: readonly string[] }>(FIELD_CLASSES).flatMap(
    ({ secret, personal }) => [...secret, ...personal],
  );
  for (const path of paths)
    assert.ok(
      apart.some((name) => path.split(/\W/)[0] === name),
      path,
    );
  for (const name of ['sender_id', 'receiver', 'receivers', 'gift_ids', 'kept', 'replaces', 'replaced_by'])
    assert.ok(apart.includes(name), name);
  assert.equal(apart, [...new Set(apart)].toSorted());
  assert.not(apart.some((name) => /\W/.test(name)));
});

test('the doc comment of each event type names its secret and personal fields', () => {
  const comments = [...sources.join('\n').matchAll(/\/\*\*((?:(?!\*\/)[^])*)\*\/\n(?:export )?type (\w+)/g)].map(
    ([, comment = '', name = '']) => ({ name, comment }),
  );
  for (const [type, classes] of Object.entries<{ secret: readonly string[]; personal: readonly string[] }>(
    FIELD_CLASSES,
  )) {
    // Those of entries are told of together, by name.
    const own =
      comments.find(({ name }) => name === type) ?? comments.find(({ comment }) => comment.includes(`\`${type}\``));
    for (const path of classes.secret)
      assert.ok(own?.comment.split('Secret')[1]?.includes(`\`${path}\``), `${type} ${path}`);
    for (const path of classes.personal)
      assert.ok(own?.comment.split('Personal')[1]?.includes(`\`${path.replace(/\[\]$/, '')}\``), `${type} ${path}`);
  }
});

test.run();
