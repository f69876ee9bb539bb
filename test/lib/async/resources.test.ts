import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { resources } from '../../../src/lib/async/resources.js';

const test = suite('resources');

test('closes last in, first out, each once, whatever one of them throws', async () => {
  const closed: string[] = [];
  const open = resources();
  for (const name of ['a', 'b', 'c']) {
    assert.equal(
      open.add(name, async (one) => {
        closed.push(one);
        if (one === 'b') throw new Error('stuck');
      }),
      name,
    );
  }
  await assert.rejects(
    open.close(),
    (error: unknown) =>
      error instanceof AggregateError && error.errors.length === 1 && error.message === 'closing failed: stuck',
  );
  assert.deepEqual(closed, ['c', 'b', 'a']);
  await open.close();
  assert.equal(closed.length, 3);
});

test.run();
