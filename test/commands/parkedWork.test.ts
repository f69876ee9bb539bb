import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import { parkedInLog } from '../../src/ops/parked/parkedView.js';
import type { CommandContext } from '../../src/commands/context.js';
import { findParked, type ParkedDeps } from '../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../src/commands/parkedWork.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { parkedId, type ParkedName, parkedStream } from '../../src/domain/parked.js';
import { ConflictError } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { ParkedDocument } from '../../src/projections/parked.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { refusal } from '../support/assertions/rejects.js';

const test = suite('commands/parkedWork');
const context = (): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: '2026-05-04T12:00:00.000Z',
});

/** The log with some work parked: `purchase p1`, `refund r1`, `refund p1`, many others around them. */
function parkedLog(): MemoryEvents {
  const events = memoryEvents();
  const park = (name: ParkedName, entity: string): void =>
    events.given(parkedStream(name), {
      type: 'WorkParked',
      data: { entity, transaction_id: 'p1', step: 'x', cause: 'down', event_id: 'e', times: 1 },
    });
  for (const entity of ['a', 'p1', 'b']) park('purchase', entity);
  for (const entity of ['r1', 'c', 'p1']) park('refund', entity);
  return events;
}

/** A read model that has come as far as `upTo` events of the log, or fails. */
const desk = (events: MemoryEvents, upTo: number | Error = 0): ParkedDeps => ({
  events,
  parked: {
    async getMany(ids: readonly string[]): Promise<(ParkedDocument | undefined)[]> {
      if (upTo instanceof Error) throw upTo;
      const then = memoryEvents();
      for (const { stream, type, data } of events.log.slice(0, upTo)) then.given(stream, { type, data });
      const known = await parkedInLog(then);
      return ids.map((id) => known.find((one) => one.id === id)?.document);
    },
  } as ParkedDeps['parked'],
  gifts: { get: async (id) => (id === UNISSUED ? { transaction_id: 't1' } : undefined) },
});

const SEED = 'ab'.repeat(32);
const [FIRST, UNISSUED] = deriveGiftIds(SEED, 2).map((ids) => ids.gift_id) as [string, string];

/** A purchase of two gifts, of which one is issued, and this work parked around it. */
function purchaseLog(...parked: readonly (readonly [name: ParkedName, entity: string])[]): MemoryEvents {
  const events = memoryEvents();
  const bought = { transaction_id: 't1', seed: SEED, receivers: [{}, {}] };
  events.given(
    'transaction-t1',
    { type: 'GiftsPurchased', data: bought },
    { type: 'RefundRequested', data: { refund_id: 'rf1', gift_ids: [FIRST] } },
    { type: 'RefundRefused', data: { refund_id: 'rf1', attempt: 1, amount: 350, provider: 'p', code: 'closed' } },
    { type: 'RefundStarted', data: { refund_id: 'late-1', gift_ids: [] } },
    { type: 'DisputeOpened', data: { dispute_id: 'dp1' } },
  );
  events.given(`gift-${FIRST}`, { type: 'GiftIssued', data: { transaction_id: 't1', receiver: {} } });
  for (const [name, entity] of parked)
    events.given(`parked-${name}`, {
      type: 'WorkParked',
      data: { entity, transaction_id: 't1', step: 's', cause: 'c', event_id: 'e', times: 1 },
    });
  return events;
}

test('finds work of every process by gift and transaction', async () => {
  for (const [name, entity, others] of [
    ['purchase', 't1', true],
    ['refund', 'rf1', false],
    ['refund', 'late-1', true],
    ['refund', 't1', true],
    ['dispute', 'dp1', true],
    ['notification', FIRST, false],
  ] as const) {
    const events = purchaseLog([name, entity]);
    for (const upTo of [0, events.log.length]) {
      for (const named of ['t1', FIRST, entity])
        assert.equal(
          (await findParked(desk(events, upTo), named)).id,
          parkedId(name, entity),
          `${name} ${entity} by ${named}`,
        );
      // What concerns the other gift alone is none of this one's.
      const other = findParked(desk(events, upTo), UNISSUED);
      if (others) assert.equal((await other).id, parkedId(name, entity));
      else await assert.rejects(other, refusal('parked_work_not_found'));
    }
    await assert.rejects(findParked(desk(events), 't2'), refusal('parked_work_not_found'));
    assert.equal((await discardParked(desk(events), FIRST, context(), 'seen to')).id, parkedId(name, entity));
  }
});

test('refuses an ambiguous id where several wait, and prefers the entity’s own work', async () => {
  const events = purchaseLog(['refund', 'rf1'], ['dispute', 'dp1']);
  assert.equal((await findParked(desk(events), 't1')).work.state, 'parked');
  await assert.rejects(retryParked(desk(events), 't1', context(), 'go'), refusal('parked_work_ambiguous'));
  const given = context();
  assert.equal((await retryParked(desk(events), 'rf1', given, 'go')).name, 'refund');
  assert.equal((await retryParked(desk(events), FIRST, context(), 'go')).name, 'dispute');
  assert.equal((await retryParked(desk(events), 'rf1', given, 'go')).replayed, true);
  const both = purchaseLog(['purchase', 't1'], ['dispute', 'dp1']);
  assert.equal((await discardParked(desk(both), 't1', context(), 'its own')).name, 'purchase');
  assert.equal((await discardParked(desk(both), 't1', context(), 'again')).name, 'purchase', 'not the dispute’s');
  assert.equal((await findParked(desk(both), 't1')).name, 'dispute', 'what waits is shown first');
});

test('finds work by id or entity, in the read model or else in the log', async () => {
  const events = parkedLog();
  for (const deps of [desk(events, 6), desk(events, 0), desk(events, new UnavailableError('being built'))]) {
    for (const name of ['r1', parkedId('refund', 'r1')]) {
      const { id, work, history } = await findParked(deps, name);
      assert.deepEqual([id, work.entity, work.state, history.length], [parkedId('refund', 'r1'), 'r1', 'parked', 1]);
    }
    await assert.rejects(findParked(deps, 'nothing'), refusal('parked_work_not_found'));
  }
  await assert.rejects(findParked(desk(events, new TypeError('odd')), 'r1'), TypeError);
});

test('prefers the work of an entity that waits, else the first', async () => {
  for (const upTo of [0, 6]) {
    const events = parkedLog();
    assert.equal((await findParked(desk(events, upTo), 'p1')).name, 'purchase');
    await discardParked(desk(events, upTo), parkedId('purchase', 'p1'), context(), 'seen to');
    const later = desk(events, upTo === 0 ? 0 : 7);
    assert.equal((await findParked(later, 'p1')).name, 'refund');
    await discardParked(later, 'p1', context(), 'seen to');
    assert.equal((await findParked(desk(events, upTo === 0 ? 0 : 8), 'p1')).name, 'purchase');
  }
});

test('counts events behind the read model', async () => {
  const events = parkedLog();
  await retryParked(desk(events, 6), 'r1', context(), 'up again');
  events.given(parkedStream('refund'), {
    type: 'WorkParked',
    data: { entity: 'r1', transaction_id: 'p1', step: 'x', cause: 'down again', event_id: 'e', times: 2 },
  });
  const { work, history } = await findParked(desk(events, 6), 'r1');
  assert.deepEqual([work.state, work.times, work.cause, history.length], ['parked', 2, 'down again', 3]);
  for (const upTo of [7, 8]) assert.equal((await findParked(desk(events, upTo), 'r1')).history.length, 3);
});

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

test('lists all parked work in the order of its last events', async () => {
  const events = parkedLog();
  for (let n = 0; n < 1_200; n++)
    events.given(parkedStream('dispute'), {
      type: 'WorkParked',
      data: { entity: `d${n}`, transaction_id: 't', step: 'dispute', cause: 'x', event_id: 'e', times: 1 },
    });
  await retryParked(desk(events), 'a', context(), 'up');
  const all = await parkedInLog(events);
  assert.deepEqual(
    [all.length, all[0]?.document.entity, all.at(-1)?.document.entity, all.at(-1)?.document.state],
    [1_206, 'p1', 'a', 'retried'],
  );
  assert.equal((await parkedInLog(events, ['refund'])).length, 3);
});

test('shows related work in the order of the purchase, or of the log where the read model has none', async () => {
  const events = purchaseLog(['notification', UNISSUED], ['notification', FIRST]);
  assert.equal((await findParked(desk(events, events.log.length), 't1')).work.entity, FIRST);
  assert.equal((await findParked(desk(events), 't1')).work.entity, UNISSUED);
});

test('reads no purchase for what can be no transaction', async () => {
  const events = memoryEvents();
  const read: string[] = [];
  const watched: MemoryEvents = {
    ...events,
    read: async (stream, options) => {
      read.push(stream);
      return events.read(stream, options);
    },
  };
  const readFor = async (named: string): Promise<string[]> => {
    read.length = 0;
    await assert.rejects(findParked(desk(watched), named), refusal('parked_work_not_found'));
    return read.filter((stream) => stream.startsWith('transaction-'));
  };
  for (const named of ['', 'x'.repeat(65), 'ff'.repeat(10)]) assert.deepEqual(await readFor(named), [], named);
  assert.deepEqual(await readFor('x'.repeat(64)), [`transaction-${'x'.repeat(64)}`]);
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
