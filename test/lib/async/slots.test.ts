import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { openSlots } from '../../../src/lib/async/slots.js';

const test = suite('slots');

test('frees a slot once, for the first that waits', async () => {
  const slots = openSlots(1);
  const free = await slots.take();
  const order: string[] = [];
  const waits = ['a', 'b'].map(async (name) => {
    const done = await slots.take();
    order.push(name);
    done();
  });
  assert.deepEqual([slots.taken, slots.waiting], [1, 2]);
  free();
  free();
  await Promise.all(waits);
  assert.deepEqual(order, ['a', 'b']);
  assert.deepEqual([slots.taken, slots.waiting], [0, 0]);
});

test('a failure is for those who wait now: who holds a slot keeps it, and later ones get theirs', async () => {
  const slots = openSlots(1);
  const free = await slots.take();
  const waits = Promise.allSettled([slots.take(), slots.take()]);
  slots.fail(new Error('closed'));
  assert.deepEqual(
    (await waits).map((one) => one.status === 'rejected' && (one.reason as Error).message),
    ['closed', 'closed'],
  );
  const later = slots.take();
  free();
  (await later)();
  assert.equal(slots.taken, 0);
});

test.run();
