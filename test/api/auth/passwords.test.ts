import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { passwords } from '../../../src/api/auth/passwords.js';
import { costOf, hashOfNobody, hashPassword, PRESENT_COST, verifyPassword } from '../../../src/lib/passwordHash.js';

const test = suite('passwords');
const free = async (): Promise<void> => undefined;
const costs = async (): Promise<string[]> => [];
let known: string;
test.before(async () => {
  known = await hashPassword('right');
});

test('finds the candidate that fits the hash', async () => {
  const checker = passwords({ costs });
  assert.is(await checker.verify(known, ['right'], free), 'right');
  assert.is(await checker.verify(known, ['wrong', 'right'], free), 'right');
  assert.is(await checker.verify(known, ['right', 'wrong'], free), 'right');
  assert.is(await checker.verify(known, ['wrong'], free), undefined);
  assert.is(await checker.verify(undefined, ['right'], free), undefined);
  await checker.close();
});

test('makes the same checks for each name, known or not, whatever the costs that are stored', async () => {
  const stored = ['m=8,t=1,p=1', 'm=16,t=3,p=2', PRESENT_COST];
  const checks: string[] = [];
  const checker = passwords({
    costs: async () => stored,
    async fits(hash, candidate) {
      checks.push(`${costOf(hash)} ${candidate}`);
      return verifyPassword(hash, candidate);
    },
  });
  const made = async (hash: string | undefined): Promise<string[]> => {
    checks.length = 0;
    assert.is(await checker.verify(hash, ['wrong', 'as typed'], free), undefined);
    return checks.toSorted();
  };
  const unknown = await made(undefined);
  assert.equal(unknown, stored.flatMap((cost) => [`${cost} as typed`, `${cost} wrong`]).toSorted());
  for (const cost of stored) assert.equal(await made(hashOfNobody(cost)), unknown, cost);
  await checker.close();
});

test('a check is charged when it is its turn, and not made when that is refused', async () => {
  const checker = passwords({ costs, width: 1 });
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
  const checker = passwords({ costs, width: 1 });
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
  const checker = passwords({ costs });
  let done = false;
  const check = checker.verify(known, ['right'], free).then(() => (done = true));
  await checker.close();
  assert.ok(done);
  await check;
});

test.run();
