import { setImmediate as turn, setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { within } from '../../../src/lib/async/within.js';

const test = suite('within');
const never = new Promise<string>(() => undefined);
const messageOf = async (promise: Promise<unknown>): Promise<string> =>
  promise.then(String, (error: unknown) => (error as Error).message);

test("gives the promise's outcome in time, and leaves no timer", async () => {
  const timers = (): number => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
  // The test runner's own timer is over by then.
  await turn();
  const before = timers();
  assert.is(await within(Promise.resolve('here'), 60_000, () => assert.unreachable()), 'here');
  assert.is(await messageOf(within(Promise.reject(new Error('broken')), 60_000, () => assert.unreachable())), 'broken');
  assert.is(timers(), before);
});

test('gives the outcome of `late` after the deadline, and ignores a later failure', async () => {
  assert.is(await within(never, 1, () => 'late'), 'late');
  assert.is(await within(never, 1, async () => 'late, too'), 'late, too');
  const fails = sleep(10).then(() => {
    throw new Error('unheard');
  });
  assert.is(
    await messageOf(
      within(fails, 1, () => {
        throw new Error('late');
      }),
    ),
    'late',
  );
  await sleep(20);
});

test.run();
