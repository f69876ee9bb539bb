import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inTurns } from '../../../src/lib/async/inTurns.js';
import { failureOf } from '../../support/engines/eventStoreEvents.js';

const test = suite('one question at a time');

/** Questions that are answered by hand, each with its number. */
function questions() {
  const open: { answer: () => void; fail: () => void }[] = [];
  let requested = 0;
  const ask = inTurns(async () => {
    requested += 1;
    const number = requested;
    return new Promise<number>((resolve, reject) =>
      open.push({ answer: () => resolve(number), fail: () => reject(new Error(`no ${number}`)) }),
    );
  });
  return { ask, open, requested: () => requested };
}

test('asks one question for all callers of a turn, after them', async () => {
  const { ask, open, requested } = questions();
  const both = Promise.all([ask(), ask()]);
  assert.is(requested(), 0);
  await sleep(1);
  assert.is(requested(), 1);
  open[0]?.answer();
  assert.equal(await both, [1, 1]);
});

test('gives callers during a question the answer to the next, never to that one', async () => {
  const { ask, open, requested } = questions();
  const first = ask();
  await sleep(1);
  const later = Promise.all([ask(), ask()]);
  await sleep(1);
  assert.is(requested(), 1);
  open[0]?.answer();
  assert.is(await first, 1);
  await sleep(1);
  open[1]?.answer();
  assert.equal(await later, [2, 2]);
  const last = ask();
  await sleep(1);
  open[2]?.answer();
  assert.is(await last, 3);
});

test('fails only those who share a failed question', async () => {
  const { ask, open } = questions();
  const first = failureOf(ask());
  await sleep(1);
  const second = ask();
  open[0]?.fail();
  assert.is(((await first) as Error).message, 'no 1');
  await sleep(1);
  open[1]?.answer();
  assert.is(await second, 2);
});

test.run();
