import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import type { CommandContext } from '../../src/commands/transact.js';
import { noteUndelivered } from '../../src/commands/noteDelivery.js';
import { notificationStream } from '../../src/domain/notification.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { inVirtualTime } from '../simulation/world/virtualTime.js';

const test = suite('commands/note delivery');
const timed = inVirtualTime(test);
const STREAM = notificationStream('g');
const FAILED = { transaction_id: 't', message_id: 'm', channel: 'sms', cause: 'unknown number' } as const;
const WAIT_MS = 1_000;
const started = { type: 'NotificationStarted', data: { transaction_id: 't', attempt: 1, asked_by: 'e' } };
const sent = { type: 'NotificationSent', data: { transaction_id: 't', attempt: 1, message_id: 'm', asked_by: 'e' } };
const context = (commandId: string): CommandContext => ({
  commandId,
  correlationId: 'c',
  by: { user: 'system' },
  now: '2026-05-04T12:00:00.000Z',
});
const note = (events: MemoryEvents, commandId = 'a'): ReturnType<typeof noteUndelivered> =>
  noteUndelivered(events, 'g', { ...FAILED, attempt: 1 } as never, context(commandId), WAIT_MS);
const types = ({ log }: MemoryEvents): string[] => log.map(({ type }) => type.replace('Notification', ''));

/** Result of a call, and the virtual ms that it took. */
async function timeOf<T>(call: () => Promise<T>): Promise<[T, number]> {
  const from = Date.now();
  const value = await call();
  return [value, Date.now() - from];
}

timed('records once, at once, that a message was not delivered', async () => {
  const events = memoryEvents();
  events.given(STREAM, started, sent);
  assert.deepEqual(await timeOf(() => note(events)), ['recorded', 0]);
  assert.deepEqual(await timeOf(() => note(events)), ['known', 0]);
  assert.deepEqual(await timeOf(() => note(events, 'b')), ['known', 0]);
  assert.deepEqual(types(events), ['Started', 'Sent', 'Undelivered']);
  assert.deepEqual(events.log.at(-1)?.data, FAILED);
});

timed('waits for the record of a sending that is in progress', async () => {
  const events = memoryEvents();
  events.given(STREAM, started);
  const noted = timeOf(() => note(events));
  await sleep(120);
  events.given(STREAM, sent);
  assert.deepEqual(await noted, ['recorded', 150]);
  assert.deepEqual(types(events), ['Started', 'Sent', 'Undelivered']);
});

timed('fails a notification whose sending is not recorded in time', async () => {
  const events = memoryEvents();
  events.given(STREAM, started);
  assert.deepEqual(await timeOf(() => note(events)), ['recorded', WAIT_MS]);
  assert.deepEqual(types(events), ['Started', 'Failed']);
  assert.deepEqual(events.log.at(-1)?.data, { cause: 'unknown number', attempt: 1, asked_by: 'e' });
});

timed('leaves a notification that was not started, or ended otherwise', async () => {
  assert.deepEqual(await timeOf(() => note(memoryEvents())), ['unsettled', WAIT_MS]);
  const events = memoryEvents();
  events.given(STREAM, started, { type: 'NotificationSent', data: { ...sent.data, message_id: 'other' } });
  assert.deepEqual(await timeOf(() => note(events)), ['unsettled', WAIT_MS]);
  assert.deepEqual(types(events), ['Started', 'Sent']);
});

test.run();
