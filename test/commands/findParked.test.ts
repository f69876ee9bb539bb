import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { findParked } from '../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../src/commands/parkedWork.js';
import { parkedId, parkedStream } from '../../src/domain/parked.js';
import { parkedInLog } from '../../src/ops/parked/parkedView.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { refusal } from '../support/assertions/rejects.js';
import { type MemoryEvents, memoryEvents } from '../support/engines/memoryEvents.js';
import { context, desk, FIRST, parkedLog, purchaseLog, UNISSUED } from '../support/fixtures/parkedLogs.js';

const test = suite('commands/findParked');

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

test.run();
