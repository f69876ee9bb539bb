import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { accessRecorder } from '../../../src/commands/recordAccess.js';
import { lastRecorded } from '../../../src/ops/history/lastRecorded.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';

const test = suite('the last access record of a call');

test('is found within the days, the latest first, among other calls', async () => {
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
  const last = async (day: number, ...calls: string[]): Promise<string | undefined> =>
    lastRecorded(events, new Set(calls), 7, Date.UTC(2026, 4, day, 12));
  assert.equal(await last(3, 'gift backup'), '2026-05-01T11:00:00.000Z');
  assert.equal(await last(3, 'gift backup', 'gift history'), '2026-05-03T10:00:00.000Z');
  assert.equal(await last(8, 'gift backup'), '2026-05-01T11:00:00.000Z');
  assert.equal(await last(9, 'gift backup'), undefined);
  assert.equal(await last(3, 'gift copy'), undefined);
});

test.run();
