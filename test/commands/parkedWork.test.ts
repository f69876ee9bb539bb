import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { findParked } from '../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../src/commands/parkedWork.js';
import { parkedId, parkedStream } from '../../src/domain/parked.js';
import { ConflictError } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { context, desk, parkedLog } from '../support/fixtures/parkedLogs.js';

const test = suite('commands/parkedWork');

test('decides again after a lost race, and refuses where the winner did the opposite', async () => {
  const events = parkedLog();
  let others = 1;
  events.beforeAppend = async () => {
    if (others-- > 0) await retryParked(desk(events), 'c', context(), 'another one');
  };
  const { own, replayed } = await retryParked(desk(events), 'r1', context(), 'up again');
  assert.deepEqual([own?.type, replayed], ['WorkRetried', false], 'what others did to other work is no hindrance');

  events.beforeAppend = () => undefined;
  const racing = parkedLog();
  let first = true;
  racing.beforeAppend = async () => {
    if (!first) return;
    first = false;
    await retryParked(desk(racing), 'r1', context(), 'quicker');
  };
  await assert.rejects(discardParked(desk(racing), 'r1', context(), 'too late'), refusal('work_retried'));

  const stubborn = parkedLog();
  stubborn.beforeAppend = (stream) => {
    throw new ConflictError(stream, 1, 2);
  };
  await assert.rejects(retryParked(desk(stubborn), 'r1', context(), 'never'), ConflictError);
});

/** A log with one parked notification that was started, with an unknown outcome. */
function parkedNotification(): MemoryEvents {
  const events = memoryEvents();
  events.given('gift-g', { type: 'GiftIssued', data: { transaction_id: 't', index: 0, receiver: { user_id: 'bob' } } });
  events.given('notification-g', {
    type: 'NotificationStarted',
    data: { transaction_id: 't', channel: 'push', attempt: 1, asked_by: events.log[0]?.id },
  });
  events.given(parkedStream('notification'), {
    type: 'WorkParked',
    data: { entity: 'g', transaction_id: 't', step: 'notify', cause: 'down', event_id: 'e', times: 1 },
  });
  return events;
}
const notifications = (events: MemoryEvents): string[] =>
  events.log.filter(({ stream }) => stream === 'notification-g').map(({ type }) => type);

/** Somebody hands the work back right before the next append. */
function retriedMeanwhile(events: MemoryEvents, idOrEntity: string): void {
  let first = true;
  events.beforeAppend = async () => {
    if (!first) return;
    first = false;
    await retryParked(desk(events), idOrEntity, context(), 'quicker');
  };
}

test('leaves the notification to a retry that won against the discard', async () => {
  const events = parkedNotification();
  retriedMeanwhile(events, 'g');
  await assert.rejects(discardParked(desk(events), 'g', context(), 'too late'), refusal('work_retried'));
  assert.deepEqual(notifications(events), ['NotificationStarted']);
});

test('ends the notification when an interrupted discard is repeated by any command', async () => {
  for (const again of ['same', 'other']) {
    const events = parkedNotification();
    const given = context();
    events.beforeAppend = (stream) => {
      if (stream.startsWith('notification-')) throw new UnavailableError('down');
    };
    await assert.rejects(discardParked(desk(events), 'g', given, 'called'), UnavailableError);
    assert.deepEqual(notifications(events), ['NotificationStarted']);
    events.beforeAppend = () => undefined;
    await discardParked(desk(events), 'g', again === 'same' ? given : context(), 'called');
    assert.deepEqual(notifications(events), ['NotificationStarted', 'NotificationFailed']);

    // What is asked for after it was discarded is no part of it.
    events.given('notification-g', {
      type: 'NotificationRequested',
      data: { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'in vain' },
    });
    await discardParked(desk(events), 'g', context(), 'called');
    assert.deepEqual(notifications(events).slice(1), ['NotificationFailed', 'NotificationRequested']);
    assert.equal(events.log.filter(({ type }) => type === 'WorkDiscarded').length, 1);
  }
});

test('the same command again changes nothing', async () => {
  const events = parkedLog();
  const given = context();
  const first = await discardParked(desk(events), 'r1', given, 'seen to');
  assert.deepEqual([first.work.state, first.history.at(-1)?.id], ['discarded', first.own?.id]);
  await retryParked(desk(events), 'r1', context(), 'after all');
  const again = await discardParked(desk(events), 'r1', given, 'seen to');
  assert.deepEqual([again.work, again.history], [first.work, first.history], 'it is answered as it was');
  assert.deepEqual([first.replayed, again.replayed, again.own?.id], [false, true, first.own?.id]);
  assert.equal((await retryParked(desk(events), 'r1', context(), 'once more')).own, undefined);
});

test('acts on the same work when a command that names an entity is repeated', async () => {
  for (const upTo of [0, 6, new UnavailableError('being built')]) {
    for (const command of [retryParked, discardParked]) {
      const events = parkedLog();
      const given = context();
      const first = await command(desk(events, upTo), 'p1', given, 'seen to');
      const again = await command(desk(events, upTo), 'p1', given, 'seen to');
      assert.deepEqual(
        [first.name, again.name, again.replayed, again.own?.id],
        ['purchase', 'purchase', true, first.own?.id],
      );
      assert.equal((await findParked(desk(events, upTo), parkedId('refund', 'p1'))).work.state, 'parked');
      assert.equal(
        (await command(desk(events, upTo), 'p1', context(), 'the other one')).name,
        'refund',
        'another command goes on with what waits',
      );
    }
  }
});

test('stays with its work after a lost race, not another of its entity', async () => {
  const events = parkedLog();
  retriedMeanwhile(events, parkedId('purchase', 'p1'));
  await assert.rejects(discardParked(desk(events), 'p1', context(), 'too late'), refusal('work_retried'));
  assert.equal((await findParked(desk(events), parkedId('refund', 'p1'))).work.state, 'parked');
});

test('an interrupted discard ends what was requested before it, also after the work was parked', async () => {
  const events = parkedNotification();
  events.given(
    'notification-g',
    { type: 'NotificationFailed', data: { cause: 'x', attempt: 1, asked_by: events.log[0]?.id } },
    {
      type: 'NotificationRequested',
      data: { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'not seen' },
    },
  );
  events.beforeAppend = (stream) => {
    if (stream.startsWith('notification-')) throw new UnavailableError('down');
  };
  await assert.rejects(discardParked(desk(events), 'g', context(), 'called'), UnavailableError);
  events.beforeAppend = () => undefined;
  await discardParked(desk(events), 'g', context(), 'called');
  assert.deepEqual(notifications(events).slice(1), [
    'NotificationFailed',
    'NotificationRequested',
    'NotificationFailed',
  ]);
});

test.run();
