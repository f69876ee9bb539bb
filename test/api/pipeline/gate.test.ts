import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gate, keyedGate } from '../../../src/api/pipeline/gate.js';
import { HttpError } from '../../../src/api/pipeline/errors.js';

const test = suite('gate');
const tick = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** Work that ends when told to. */
function work(): {
  readonly run: () => Promise<string>;
  end: (value: string) => void;
  fail: (error: Error) => void;
  readonly began: () => boolean;
} {
  let began = false;
  let settle: { resolve: (value: string) => void; reject: (error: Error) => void };
  const promise = new Promise<string>((resolve, reject) => (settle = { resolve, reject }));
  return {
    run: async () => {
      began = true;
      return promise;
    },
    end: (value) => settle.resolve(value),
    fail: (error) => settle.reject(error),
    began: () => began,
  };
}

test('lets so many through at once, the others in their order', async () => {
  const turns = gate(2, 10);
  const works = [work(), work(), work(), work()];
  const results = works.map(async (one) => turns.run(one.run));
  await tick();
  assert.equal(
    works.map((one) => one.began()),
    [true, true, false, false],
  );
  works[1]?.end('b');
  await tick();
  assert.equal(
    works.map((one) => one.began()),
    [true, true, true, false],
  );
  assert.not.ok(turns.idle());
  for (const [index, one] of works.entries()) one.end('abcd'.charAt(index));
  assert.equal(await Promise.all(results), ['a', 'b', 'c', 'd']);
  assert.ok(turns.idle());
});

test('work that fails gives its place on', async () => {
  const turns = gate(1, 10);
  const [first, second] = [work(), work()];
  const failed = turns.run(first.run);
  const done = turns.run(second.run);
  first.fail(new Error('no'));
  await failed.then(
    () => assert.unreachable(),
    (error: Error) => assert.is(error.message, 'no'),
  );
  second.end('yes');
  assert.is(await done, 'yes');
});

test('sends away who comes when too many wait', async () => {
  const turns = gate(1, 1);
  const [first, second] = [work(), work()];
  const both = [turns.run(first.run), turns.run(second.run)];
  try {
    await turns.run(async () => 'third');
    assert.unreachable();
  } catch (error) {
    assert.instance(error, HttpError);
    assert.is((error as HttpError).code, 'too_many_requests');
    assert.equal((error as HttpError).headers, { 'Retry-After': '1' });
  }
  first.end('1');
  second.end('2');
  assert.equal(await Promise.all(both), ['1', '2']);
});

test('keys do not wait for each other, one key waits for itself', async () => {
  const turns = keyedGate(10);
  const works = [work(), work(), work()];
  const results = [turns.run('a', works[0]!.run), turns.run('b', works[1]!.run), turns.run('a', works[2]!.run)];
  await tick();
  assert.equal(
    works.map((one) => one.began()),
    [true, true, false],
  );
  for (const one of works) one.end('x');
  await Promise.all(results);
  const again = work();
  const last = turns.run('a', again.run);
  await tick();
  assert.ok(again.began());
  again.end('y');
  assert.is(await last, 'y');
});

test('who comes for a key once its first work has ended waits for the second all the same', async () => {
  const turns = keyedGate(10);
  const [first, second, third] = [work(), work(), work()];
  const results = [turns.run('a', first.run), turns.run('a', second.run)];
  first.end('1');
  await results[0];
  results.push(turns.run('a', third.run));
  await tick();
  assert.equal([second.began(), third.began()], [true, false]);
  second.end('2');
  third.end('3');
  assert.equal(await Promise.all(results), ['1', '2', '3']);
});

test.run();
