import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inFlight } from '../../src/lib/inFlight.js';

const test = suite('In flight');

test('gives each item back once, by its number', () => {
  const items = inFlight<string>();
  const [a, b] = [items.put('a'), items.put('b')];
  assert.equal([a, b, items.size()], [1, 2, 2]);
  assert.equal([items.get(a), items.take(a), items.get(a), items.take(a)], ['a', 'a', undefined, undefined]);
  assert.equal([items.size(), items.values()], [1, ['b']]);
});

test('uses a number again once it was taken, and never one that is held', () => {
  const items = inFlight<number>();
  const held = new Map<number, number>();
  for (let n = 0; n < 1_000; n++) {
    const number = items.put(n);
    assert.not.ok(held.has(number));
    held.set(number, n);
    if (n % 3 > 0) {
      const [first, item] = [...held][n % held.size] as [number, number];
      assert.is(items.take(first), item);
      held.delete(first);
    }
  }
  assert.equal(new Set(items.values()), new Set(held.values()));
  assert.is(items.size(), held.size);
  assert.ok(Math.max(...held.keys()) <= items.size() * 2, 'it stays small');
});

test('lets go of all at once, and knows no number of before', () => {
  const items = inFlight<string>();
  const [a] = [items.put('a'), items.put('b')];
  assert.equal(items.clear(), ['a', 'b']);
  assert.equal([items.size(), items.take(a), items.take(99)], [0, undefined, undefined]);
  assert.is(items.put('c'), 1);
});

test.run();
