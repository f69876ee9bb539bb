import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inParallel } from '../../../src/lib/async/inParallel.js';

const test = suite('in parallel');
const numbers = (count: number): number[] => Array.from({ length: count }, (_, n) => n);
const turn = async (): Promise<void> =>
  new Promise((resolve) => {
    setImmediate(resolve);
  });

test('works on every item once, in order, never on more than the limit at a time', async () => {
  const begun: number[] = [];
  let running = 0;
  let most = 0;
  await inParallel(numbers(100), 7, async (n) => {
    begun.push(n);
    most = Math.max(most, ++running);
    await turn();
    running--;
  });
  assert.equal([begun, running, most], [numbers(100), 0, 7]);
  await inParallel([], 7, async () => assert.unreachable());
  const seen: unknown[] = [];
  await inParallel([undefined, null, 0], 1, async (item) => void seen.push(item));
  assert.equal(seen, [undefined, null, 0], 'whatever the item');
});

test('asks an iterator for no more items than are started', async () => {
  let made = 0;
  function* making(): Generator<number> {
    for (;;) yield ++made;
  }
  let left = 5;
  const end = new AbortController();
  await inParallel(
    making(),
    3,
    async () => {
      await turn();
      if (--left === 0) end.abort();
    },
    end.signal,
  );
  assert.ok(made <= 5 + 3, String(made));
});

test('starts nothing after a failure, waits for what runs, then throws the failure', async () => {
  let begun = 0;
  let ended = 0;
  try {
    await inParallel(numbers(10_000), 32, async (n) => {
      begun++;
      if (n === 0) throw new Error('the first');
      await turn();
      ended++;
    });
    assert.unreachable();
  } catch (error) {
    assert.is((error as Error).message, 'the first');
  }
  assert.equal([begun, ended], [32, 31]);
});

test('ends the same way after an abort, without an error', async () => {
  const stop = new AbortController();
  let begun = 0;
  await inParallel(
    numbers(100),
    4,
    async () => {
      if (++begun === 10) stop.abort();
      await turn();
    },
    stop.signal,
  );
  assert.ok(begun >= 10 && begun < 14, String(begun));
});

test.run();
