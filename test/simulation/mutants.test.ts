/** The patches of the back-test (docs/simulation.md#back-testing) apply to the tree as it is. */
import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

const test = suite('simulation/mutants');

const root = fileURLToPath(new URL('../../..', import.meta.url));
const folder = join('test', 'simulation', 'mutants');
const names = readdirSync(join(root, folder)).sort();

test('says what is wrong in each patch, and changes nothing but src', () => {
  const numbers = new Set<string>();
  for (const name of names) {
    const [, number] = /^(\d{3})-[a-z0-9-]+\.patch$/.exec(name) ?? [];
    assert.ok(number !== undefined && !numbers.has(number), `${name}: a name is NNN-what-is-wrong.patch, NNN its own`);
    numbers.add(number);
    const text = readFileSync(join(root, folder, name), 'utf8');
    assert.match(text, /^[A-Z`][^]*\.\n--- a\//, `${name}: it begins with a sentence that says what is wrong`);
    for (const [, path = ''] of text.matchAll(/^(?:---|\+\+\+) (\S+)/gm)) assert.match(path, /^[ab]\/src\//, name);
  }
  assert.ok(names.length >= 40, String(names.length));
});

test('applies each patch to the tree', () => {
  for (const name of names) {
    const { status, stderr, error } = spawnSync('git', ['apply', '--check', join(folder, name)], {
      cwd: root,
      encoding: 'utf8',
    });
    assert.is(
      status,
      0,
      `${name} puts a former fault back, and does not apply any more. Make the same fault in src as it is now, write ` +
        `its patch by "git diff -U2 src" below the sentence that the file begins with, and take the change back: ` +
        `${error?.message ?? stderr}`,
    );
  }
});

test.run();
