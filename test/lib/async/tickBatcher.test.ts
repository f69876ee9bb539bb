import { setImmediate as turn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { batchedAnswers } from '../../../src/lib/async/tickBatcher.js';
import { LOW_PRIORITY_SLICE_MS } from '../../../src/lib/async/slices.js';

const test = suite('tick batcher');

test('answers questions of one turn at its end, together and in order', async () => {
  const turns: number[][] = [];
  let current: number[] = [];
  const ask = batchedAnswers(
    (question: number) => {
      current.push(question);
      return question * 10;
    },
    {
      atOnce: 10,
      around(work) {
        current = [];
        work();
        turns.push(current);
      },
    },
  );
  const answers = Promise.all([ask(1), ask(2), ask(3)]);
  await Promise.resolve();
  assert.equal(turns, [], 'not before the turn ends');
  assert.equal(await answers, [10, 20, 30]);
  assert.is(await ask(4), 40);
  assert.equal(turns, [[1, 2, 3], [4]]);
});

test('answers a bounded number in one turn, in order, and leaves none out', async () => {
  const order: string[] = [];
  const ask = batchedAnswers((question: number) => order.push(String(question)), { atOnce: 2 });
  const all = Promise.all([1, 2, 3, 4, 5].map(ask));
  setImmediate(() => order.push('turn'));
  await turn();
  assert.equal(order, ['1', '2', 'turn']);
  await all;
  assert.equal(
    order.filter((one) => one !== 'turn'),
    ['1', '2', '3', '4', '5'],
  );
});

test('ends its turn after slow answers, and gives the others in the next ones, in order', async () => {
  const order: string[] = [];
  const ask = batchedAnswers(
    (question: number) => {
      for (const until = performance.now() + 2 * LOW_PRIORITY_SLICE_MS; performance.now() < until;);
      order.push(String(question));
    },
    { atOnce: 10 },
  );
  const all = Promise.all([1, 2, 3].map(ask));
  const turns = (async () => {
    for (let n = 0; n < 3; n++) {
      await turn();
      order.push('turn');
    }
  })();
  await Promise.all([all, turns]);
  assert.equal(order, ['1', 'turn', '2', 'turn', '3', 'turn']);
});

test('fails a failing question alone, and a failing turn as a whole, and nothing after it', async () => {
  let broken = false;
  const ask = batchedAnswers(
    (question: number) => {
      if (question < 0) throw new RangeError(String(question));
      return question;
    },
    {
      atOnce: 10,
      around(work) {
        if (broken) throw new Error('cannot begin');
        work();
      },
    },
  );
  const outcomes = await Promise.allSettled([ask(1), ask(-2), ask(3)]);
  assert.equal(
    outcomes.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  );
  assert.instance((outcomes[1] as PromiseRejectedResult).reason, RangeError);
  broken = true;
  const failed = await Promise.allSettled([ask(1), ask(2)]);
  assert.equal(
    failed.map((one) => (one as PromiseRejectedResult).reason?.message),
    ['cannot begin', 'cannot begin'],
  );
  broken = false;
  assert.is(await ask(5), 5);
});

test.run();
