import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { clockMs, moveClock, clockOffset } from '../../../src/lib/clock.js';
import { recordsByClock } from '../../../src/runtime/clock/sharedClock.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('records by the clock');

test('expire where the clock is moved, and may be made anew', async () => {
  const records = recordsByClock(memoryRecords(() => Date.now()));
  const expiresAt = clockMs() + 60_000;
  for (const key of ['a/1', 'a/2', 'a/3', 'a/4']) await records.put(key, key, { expected: 0, expiresAt });
  await records.put('a/5', 'for ever', { expected: 0 });
  assert.equal(await records.put('a/1', 'again', { expected: 0 }), undefined);
  moveClock(clockOffset() + 59_000);
  assert.equal((await records.get('a/1'))?.value, 'a/1');
  moveClock(clockOffset() + 2_000);
  assert.equal(await records.get('a/1'), undefined);
  assert.equal((await records.get('a/5'))?.value, 'for ever');
  assert.equal(await records.put('a/3', 'new', { expected: 0, expiresAt: clockMs() + 1_000 }), 1);
  assert.deepEqual(
    (await records.list('a/', 2)).map(({ key }) => key),
    ['a/3', 'a/5'],
  );
  assert.deepEqual(
    (await records.list('a/', 1)).map(({ key }) => key),
    ['a/3'],
  );
});

test.run();
