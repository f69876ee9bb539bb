import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { missingMarks } from './knownMarks.js';

const test = suite('simulation/knownMarks');

test('misses a mark that none of enough seeds has met', () => {
  assert.ok(missingMarks({}, 300).includes('days pass'));
  assert.ok(missingMarks({ 'days pass': 0 }, 300).includes('days pass'));
  assert.not.ok(missingMarks({ 'days pass': 1 }, 300).includes('days pass'));
});

test('misses no mark where seeds are too few to meet it', () => {
  assert.equal(missingMarks({}, 299), []);
  const rare = 'a process freezes for longer than a lease';
  assert.not.ok(missingMarks({}, 300).includes(rare));
  assert.ok(missingMarks({}, 1_000).includes(rare));
});

test.run();
