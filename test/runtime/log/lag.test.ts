import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { lagBehind } from '../../../src/runtime/log/lag.js';
import { event } from '../../support/engines/eventStoreEvents.js';
import { type Installation, newInstallation } from '../../support/fixtures/projecting.js';

const test = suite<{ installation: Installation }>('lag');
const NOW = Date.parse('2026-01-01T01:00:00.000Z');
const now = (): number => NOW;
const at = (seconds: number): string => new Date(NOW - seconds * 1000).toISOString();

test.before.each(async (context) => {
  context.installation = await newInstallation();
});
test.after.each(({ installation }) => installation.destroy());

test('counts events of its types behind a position, and the age of the oldest', async ({
  installation: { events },
}) => {
  assert.equal(await lagBehind(events, undefined, ['A'], { now }), { events: 0, seconds: 0, whole: true });
  const first = await events.append('s-1', [{ ...event('A'), at: at(100) }], 'none');
  await events.append(
    's-2',
    [
      { ...event('B'), at: at(80) },
      { ...event('A'), at: at(60) },
      { ...event('A'), at: at(40) },
    ],
    'none',
  );
  const end = await events.append('s-3', [{ ...event('B'), at: at(-5) }], 'none');
  assert.equal(await lagBehind(events, undefined, ['A'], { now }), { events: 3, seconds: 100, whole: true });
  assert.equal(await lagBehind(events, first.position, ['A'], { now }), { events: 2, seconds: 60, whole: true });
  assert.equal(await lagBehind(events, first.position, ['C'], { now }), { events: 0, seconds: 0, whole: true });
  assert.equal(await lagBehind(events, end.position, ['A', 'B'], { now }), { events: 0, seconds: 0, whole: true });
  assert.is(
    (await lagBehind(events, end.position.replace(/.$/, '4'), ['B'], { now })).seconds,
    0,
    'an event from a clock that goes fast is not younger than now',
  );
});

test('stops counting at a bound, and says so when time runs out', async ({ installation: { events } }) => {
  await events.append(
    's-1',
    Array.from({ length: 3_000 }, () => ({ ...event('A'), at: at(9) })),
    'none',
  );
  assert.equal(await lagBehind(events, undefined, ['A'], { now, count: 1_500 }), {
    events: 1_500,
    seconds: 9,
    whole: false,
  });
  const slow: typeof events = {
    ...events,
    async *readAll(after, filter, options) {
      await sleep(30);
      yield* events.readAll(after, filter, options);
    },
  };
  assert.equal(await lagBehind(slow, undefined, ['A'], { now, withinMs: 5, findMs: 10 }), {
    events: 0,
    seconds: undefined,
    whole: false,
  });
  // A log that answers slowly is when the lag must show.
  const { seconds, whole } = await lagBehind(slow, undefined, ['A'], { now, withinMs: 5, findMs: 10_000 });
  assert.equal([seconds, whole], [9, false]);
});

test.run();
