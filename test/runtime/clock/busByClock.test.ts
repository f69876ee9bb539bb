import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { clockMs, clockOffset } from '../../../src/lib/clock.js';
import { busByClock } from '../../../src/runtime/clock/sharedClock.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';

const test = suite('requests by the clock');
const HOUR = 3_600_000;

test('are handled at the time of the process that asks', async () => {
  const records = memoryRecords(() => Date.now());
  let ask: (payload: object) => Promise<object> = () => Promise.reject(new Error('nothing is served'));
  const bus = busByClock(
    {
      async serve(_, __, handler) {
        ask = (payload) => handler(payload as never);
        return () => Promise.resolve();
      },
    },
    records,
  );
  await bus.serve('charge', 'workers', () => Promise.resolve({ at: clockMs() }));
  await records.put('sandbox/clock', { offset_ms: clockOffset() + HOUR }, { expected: 0 });
  const before = clockMs();
  const { at } = (await ask({})) as { at: number };
  assert.ok(at >= before + HOUR, `${at - before} ms later`);
});

test.run();
