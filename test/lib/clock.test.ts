import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import {
  afterTicks,
  clockMs,
  clockOffset,
  clockTicks,
  currentTime,
  moveClock,
  systemTime,
} from '../../src/lib/clock.js';

const test = suite('clock');
const HOUR = 3_600_000;

test('moves ahead and never back, and leaves the system time alone', () => {
  const [ms, ticks] = [clockMs(), clockTicks()];
  moveClock(clockOffset() + HOUR);
  moveClock(0);
  assert.ok(clockMs() - ms >= HOUR && clockTicks() - ticks >= HOUR);
  assert.ok(Math.abs(Date.parse(currentTime()) - Date.now() - clockOffset()) < 1_000);
  assert.ok(Math.abs(Date.parse(systemTime()) - Date.now()) < 1_000);
});

test('ends the waits that are over by a move, once, and no others', async () => {
  const ended: string[] = [];
  const later = afterTicks(3 * HOUR, () => ended.push('later'));
  afterTicks(HOUR, () => ended.push('due'));
  afterTicks(HOUR, () => ended.push('given up'))();
  afterTicks(1, () => ended.push('at once'));
  await sleep(20);
  assert.deepEqual(ended, ['at once']);
  moveClock(clockOffset() + 2 * HOUR);
  await sleep(20);
  assert.deepEqual(ended, ['at once', 'due']);
  later();
  moveClock(clockOffset() + 2 * HOUR);
  await sleep(20);
  assert.deepEqual(ended, ['at once', 'due']);
});

test.run();
