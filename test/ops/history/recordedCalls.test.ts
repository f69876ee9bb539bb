import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessRecorder } from '../../../src/commands/recordAccess.js';
import { type RecordedCall, recordedCalls } from '../../../src/ops/history/recordedCalls.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';

const test = suite('access records of calls');

test('are found within the days, the latest first, among other calls, with their outcomes', async () => {
  const events = memoryEvents();
  let at = '2026-05-01T10:00:00.000Z';
  const recorder = accessRecorder(events, () => at);
  const by = { by: { user: 'cli:root@vm' } };
  const request = { asked: {}, personal: false, reason: null };
  await recorder.start(by, { ...request, what: 'gift backup' });
  at = '2026-05-01T11:00:00.000Z';
  await (await recorder.start(by, { ...request, what: 'gift backup' })).end(7, null, true);
  at = '2026-05-03T10:00:00.000Z';
  await recorder.shown(by, { ...request, what: 'gift history' }, 1);
  await (await recorder.start(by, { ...request, what: 'gift backup' })).end(3, null, false);
  const found = async (day: number, ...names: string[]): Promise<RecordedCall[]> => {
    const calls: RecordedCall[] = [];
    for await (const call of recordedCalls(events, new Set(names), 7, Date.UTC(2026, 4, day, 12))) calls.push(call);
    return calls;
  };
  const first = { at: '2026-05-01T10:00:00.000Z', asked: {}, count: undefined };
  const second = { at: '2026-05-01T11:00:00.000Z', asked: {}, count: 7 };
  const third = { at: '2026-05-03T10:00:00.000Z', asked: {}, count: undefined };
  assert.deepEqual(await found(3, 'gift backup'), [third, second, first]);
  assert.deepEqual(await found(3, 'gift history'), [{ ...third, count: 1 }]);
  assert.deepEqual(await found(8, 'gift backup'), [third, second, first]);
  assert.deepEqual(await found(9, 'gift backup'), [third]);
  assert.deepEqual(await found(3, 'gift copy'), []);
});

test('have their outcome also where they ended on the next day', async () => {
  const events = memoryEvents();
  let at = '2026-05-01T23:59:50.000Z';
  const recorder = accessRecorder(events, () => at);
  const request = { what: 'gift backup', asked: {}, personal: true, reason: null };
  const nightly = await recorder.start({ by: { user: 'cli:root@vm' } }, request);
  at = '2026-05-02T00:00:20.000Z';
  await nightly.end(7, null, true);
  const calls: RecordedCall[] = [];
  for await (const call of recordedCalls(events, new Set(['gift backup']), 7, Date.UTC(2026, 4, 3))) calls.push(call);
  assert.deepEqual(calls, [{ at: '2026-05-01T23:59:50.000Z', asked: {}, count: 7 }]);
});

test.run();
