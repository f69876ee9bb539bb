import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { masterKeys, UnknownMasterKeyError } from '../../../src/runtime/personal/masterKeys.js';

const test = suite('master keys');

const [OLD, NEW] = ['o'.repeat(43), 'n'.repeat(43)];

test('opens what it sealed, with the same binding alone', () => {
  const keys = masterKeys([OLD]);
  const sealed = keys.seal(Buffer.from('secret'), 'log/id');
  assert.is(keys.open(sealed, 'log/id').toString(), 'secret');
  assert.throws(() => keys.open(sealed, 'log/other'), /it was altered/);
  assert.not.match(sealed, 'secret');
});

test('seals equal texts differently', () => {
  const keys = masterKeys([OLD]);
  assert.is.not(keys.seal(Buffer.from('a'), ''), keys.seal(Buffer.from('a'), ''));
});

test('seals under the first key, and opens under all', () => {
  const sealed = masterKeys([OLD]).seal(Buffer.from('secret'), '');
  const rotated = masterKeys([NEW, OLD]);
  assert.is(rotated.open(sealed, '').toString(), 'secret');
  assert.is(rotated.isCurrent(sealed), false);
  assert.is(rotated.isCurrent(rotated.seal(Buffer.from('x'), '')), true);
});

test('names a key that it was not given', () => {
  const sealed = masterKeys([OLD]).seal(Buffer.from('secret'), '');
  assert.throws(
    () => masterKeys([NEW]).open(sealed, ''),
    (error: unknown) => error instanceof UnknownMasterKeyError,
  );
});

test('opens what only the name of its key was altered of', () => {
  const keys = masterKeys([NEW, OLD]);
  const sealed = masterKeys([OLD]).seal(Buffer.from('secret'), 'id');
  const changed = (sealed.startsWith('A') ? 'B' : 'A') + sealed.slice(1);
  assert.is(keys.open(changed, 'id').toString(), 'secret');
  assert.not(keys.isCurrent(changed));
});

test('refuses a text of which one character was changed', () => {
  const keys = masterKeys([OLD]);
  const sealed = keys.seal(Buffer.from('secret'), '');
  for (let at = sealed.indexOf('.') + 1; at < sealed.length - 1; at++) {
    const changed = sealed.slice(0, at) + (sealed[at] === 'A' ? 'B' : 'A') + sealed.slice(at + 1);
    assert.throws(() => keys.open(changed, ''), /it was altered/, `character ${at}`);
  }
});

test.run();
