import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { type Progress, resumedAgain, withRecovery } from '../../src/deliveries/progress.js';

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

test('stays small and complete, however many earlier times are asked for', () => {
  let progress = missed;
  for (let hour = 23; hour >= 0; hour--)
    for (let minute = 59; minute >= 0; minute -= 10)
      progress = withRecovery(
        progress,
        `2026-05-02T${String(hour).padStart(2, '0')}:${String(minute).padStart(2, '0')}`,
      );
  assert.ok(progress.recovering.length <= 50);
  // From the earliest time on, whatever is already read: without a gap.
  const sinces = progress.recovering.map(({ since }) => since);
  assert.equal(sinces.at(-1), '2026-05-02T00:09');
  const ends = progress.recovering.map(({ before }) => before);
  assert.deepEqual(ends.slice(1), sinces.slice(0, -1));
});

test('begins where outward work was resumed, and leaves everything before to whom asks for it', () => {
  const requested = withRecovery({ ...missed, pausedUntil: 1 }, NOON);
  const resumed = resumedAgain(requested, '95');
  assert.deepEqual(
    [resumed.cursor, resumed.requested, resumed.recovering, resumed.recoveringAbandoned, resumed.pausedUntil],
    ['95', '95', [], undefined, undefined],
  );
  assert.deepEqual(withRecovery(resumed, ELEVEN).recovering.slice(-1), [{ after: '9', through: '95', since: ELEVEN }]);
  assert.ok(withRecovery(resumed, NOON).recovering.some(({ after, through }) => after === '1' && through === '5'));
});

test.run();
