import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { passwords } from '../../../src/api/auth/passwords.js';
import { hashPassword } from '../../../src/lib/passwordHash.js';

const test = suite('passwords');
const free = async (): Promise<void> => undefined;
let known: string;
test.before(async () => {
  known = await hashPassword('right');
});

test('finds the candidate that fits the hash', async () => {
  const checker = passwords();
  assert.is(await checker.verify(known, ['right'], free), 'right');
  assert.is(await checker.verify(known, ['wrong', 'right'], free), 'right');
  assert.is(await checker.verify(known, ['right', 'wrong'], free), 'right');
  assert.is(await checker.verify(known, ['wrong'], free), undefined);
  await checker.close();
});

test('an unknown user takes as long as a known one', async () => {
  const checker = passwords();
  await checker.verify(undefined, ['warm'], free);
  const timed = async (hash: string | undefined): Promise<number> => {
    const began = performance.now();
    assert.is(await checker.verify(hash, ['wrong'], free), undefined);
    return performance.now() - began;
  };
  // The quickest of some, in turns: what the machine does meanwhile only ever adds, and for longer than one of them
  // takes.
  let [unknown, wrong] = [Infinity, Infinity];
  for (let round = 0; round < 6; round++)
    [unknown, wrong] = [Math.min(unknown, await timed(undefined)), Math.min(wrong, await timed(known))];
  assert.ok(unknown > wrong / 3, `unknown ${unknown} ms, wrong ${wrong} ms`);
  await checker.close();
});

test('a check is charged when it is its turn, and not made when that is refused', async () => {
  const checker = passwords(1);
  const order: string[] = [];
  let release = (): void => undefined;
  const first = checker.verify(known, ['right'], async () => {
    order.push('first');
    await new Promise<void>((resolve) => (release = resolve));
    order.push('first is free');
  });
  const second = checker.verify(known, ['right'], async () => {
    order.push('second');
  });
  const third = checker
    .verify(known, ['right'], async () => {
      throw new Error('refused');
    })
    .then(
      () => 'checked',
      (error: Error) => error.message,
    );
  await new Promise((resolve) => setImmediate(resolve));
  assert.equal(order, ['first']);
  release();
  assert.equal(await Promise.all([first, second]), ['right', 'right']);
  assert.equal(order, ['first', 'first is free', 'second']);
  assert.is(await third, 'refused');
  await checker.close();
});

test('five hundred wait for their turn at most', async () => {
  const checker = passwords(1);
  let refuse = (): void => undefined;
  const held = new Promise<void>((_, reject) => (refuse = () => reject(new Error('refused'))));
  const checks = Array.from({ length: 502 }, () =>
    checker.verify(known, ['right'], () => held).catch((error: Error) => error.message),
  );
  refuse();
  const told = await Promise.all(checks);
  assert.equal([told.filter((one) => one === 'refused').length, told.at(-1)], [501, 'Too many requests.']);
  await checker.close();
});

test('closing waits for what is under way', async () => {
  const checker = passwords();
  let done = false;
  const check = checker.verify(known, ['right'], free).then(() => (done = true));
  await checker.close();
  assert.ok(done);
  await check;
});

test.run();
