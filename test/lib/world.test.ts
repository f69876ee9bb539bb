import assert from 'node:assert/strict';
import { suite } from 'uvu';
import {
  after,
  endTimer,
  enterWorld,
  every,
  nextTurn,
  randomUUID,
  REAL_WORLD,
  sleep,
  timeoutSignal,
  systemMs,
} from '../../src/lib/world.js';
import { until } from '../support/assertions/until.js';

const test = suite('lib/world');
test.after.each(() => void enterWorld(REAL_WORLD));

test('takes time and chance from the world that was entered', () => {
  assert.equal(enterWorld({ ...REAL_WORLD, now: () => 7, uuid: () => 'one' }), REAL_WORLD);
  assert.deepEqual([systemMs(), randomUUID()], [7, 'one']);
  enterWorld(REAL_WORLD);
  assert.notDeepEqual([systemMs(), randomUUID()], [7, 'one']);
});

test('a timer that was ended never calls', async () => {
  const called: string[] = [];
  endTimer(after(1, () => called.push('once')));
  const repeated = every(1, () => {
    called.push('again');
    if (called.length === 2) endTimer(repeated);
  });
  endTimer(undefined);
  await until(() => called.length === 2, 'both calls');
  await sleep(20);
  assert.deepEqual(called, ['again', 'again']);
  await nextTurn();
});

test('a sleep ends as soon as its signal is aborted, with its reason', async () => {
  const reason = new Error('enough');
  await assert.rejects(sleep(60_000, { signal: AbortSignal.abort(reason) }), reason);
  const controller = new AbortController();
  const slept = sleep(60_000, { signal: controller.signal });
  controller.abort(reason);
  await assert.rejects(slept, reason);
  await assert.rejects(sleep(60_000, { signal: timeoutSignal(1) }), { name: 'TimeoutError' });
});

test.run();
