import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type Progress, withRecovery } from '../../src/deliveries/progress.js';

const test = suite('deliveries/progress');

const missed: Progress = {
  logId: 'log',
  enabledAt: '2026-05-04T00:00:00.000Z',
  cursor: '9',
  waiting: [],
  skipped: [{ after: '1', through: '5' }],
  recovering: [],
  failures: 0,
  attempts: { delivered: 0, failed: 0 },
};
const NOON = '2026-05-03T12:00:00.000Z';
const ELEVEN = '2026-05-03T11:00:00.000Z';

test('reads a part of the feed once, however often the same is asked for', () => {
  let progress = missed;
  for (let n = 0; n < 3; n++) progress = withRecovery(progress, NOON);
  assert.deepEqual(progress.recovering, [{ after: '1', through: '5', since: NOON }]);
});

test('reads what an earlier time adds, up to what was asked for before', () => {
  const progress = withRecovery(withRecovery(missed, NOON), ELEVEN);
  assert.deepEqual(progress.recovering[1], { after: '1', through: '5', before: NOON, since: ELEVEN });
});

test.run();
