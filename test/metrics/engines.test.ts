import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { transact } from '../../src/commands/transact.js';
import { giftAggregate } from '../../src/domain/gift/state.js';
import { measuredBus } from '../../src/metrics/bus.js';
import { measuredEventStore } from '../../src/metrics/eventStore.js';
import { type Bus, DeadlineError, NoRespondersError, RemoteError } from '../../src/ports/bus.js';
import { EventTooLargeError } from '../../src/ports/eventStore.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { event, failureOf } from '../support/engines/eventStoreEvents.js';
import { exposed } from '../support/service/exposed.js';
import { memoryEvents } from '../support/engines/memoryEvents.js';

const test = suite('measured engines');

test('counts and times appends, conflicts and failures, and rethrows errors', async () => {
  const { show, values } = exposed();
  const memory = memoryEvents();
  const events = measuredEventStore(memory, show);
  assert.equal([events.engine, events.logId], ['memory', 'memory']);
  assert.equal(await events.append('gift-0a', [event(), event()], 'none'), {
    revision: 1,
    position: '0000000000000002',
  });
  await failureOf(events.append('gift-0a', [event()], 'none'));
  await failureOf(events.append('gift-0a', [event()], 7));
  await failureOf(events.append('odd', [event()], 7));
  const thrown: unknown[] = [
    new UnavailableError('gone'),
    new UnavailableError('late', { outcomeUnknown: true }),
    new EventTooLargeError(2_000_000),
  ];
  for (const error of thrown) {
    memory.beforeAppend = () => {
      throw error;
    };
    assert.is(await failureOf(events.append('gift-0b', [event()], 'none')), error);
  }
  memory.beforeAppend = () => undefined;
  await events.seal();
  await failureOf(events.append('gift-0c', [event()], 'none'));
  const found = await values();
  const expected = {
    gift_append_duration_seconds_count: 1,
    gift_appended_events_total: 2,
    'gift_append_conflicts_total{stream="gift"}': 2,
    'gift_append_conflicts_total{stream="odd"}': 1,
    'gift_append_failures_total{reason="unavailable"}': 1,
    'gift_append_failures_total{reason="unknown_outcome"}': 1,
    'gift_append_failures_total{reason="other"}': 1,
    'gift_append_failures_total{reason="sealed"}': 1,
  };
  for (const [name, value] of Object.entries(expected)) assert.is(found.get(name), value, name);
  assert.not(
    [...found.keys()].some((name) => name.includes('0a')),
    'no id is a label',
  );
});

test('counts a command that appends again after a conflict or an unknown outcome, and no other', async () => {
  const { show, values } = exposed();
  const memory = memoryEvents();
  const events = measuredEventStore(memory, show);
  const context = (commandId: string) => ({
    commandId,
    correlationId: 'c',
    by: { user: 'u' },
    now: '2026-01-01T00:00:00.000Z',
  });
  let races = 2;
  memory.beforeAppend = () => {
    if (races-- > 0) memory.given('gift-1', { type: 'Other', data: {} });
  };
  await transact(events, giftAggregate, 'gift-1', context('one'), () => [{ type: 'Mine', data: {} }]);
  let faults = 1;
  memory.beforeAppend = () => {
    if (faults-- > 0) throw new UnavailableError('late', { outcomeUnknown: true });
  };
  await transact(events, giftAggregate, 'gift-2', context('two'), () => [{ type: 'Mine', data: {} }]);
  await transact(events, giftAggregate, 'gift-1', context('three'), () => [{ type: 'Mine', data: {} }]);
  const found = await values();
  assert.is(found.get('gift_command_retries_total{reason="conflict"}'), 2);
  assert.is(found.get('gift_command_retries_total{reason="unknown_outcome"}'), 1);
  assert.is(found.get('gift_append_conflicts_total{stream="gift"}'), 2);
});

test('remembers only so many commands', async () => {
  const { show, values } = exposed();
  const memory = memoryEvents();
  const events = measuredEventStore(memory, show);
  await events.append('s-1', [event()], 'none');
  const lost = Array.from({ length: 1_100 }, () => event());
  for (const one of lost) await failureOf(events.append('s-1', [one], 'none'));
  for (const one of [lost[0]!, lost[1_099]!]) await failureOf(events.append('s-1', [one], 'none'));
  assert.is((await values()).get('gift_command_retries_total{reason="conflict"}'), 1);
});

test('counts requests on the bus by subject and outcome, and the answers of workers', async () => {
  const { show, values } = exposed();
  let outcome: unknown;
  let handler: (payload: object) => Promise<object> = async () => ({});
  const bare = {
    engine: 'none',
    async request() {
      if (outcome instanceof Error) throw outcome;
      return { fine: true };
    },
    async serve(_subject: string, _queue: string, given: typeof handler) {
      handler = given;
      return async () => undefined;
    },
  } as unknown as Bus;
  const bus = measuredBus(bare, show);
  assert.equal(await bus.request('payments.charge', {}, { timeoutMs: 1 }), { fine: true });
  for (const error of [
    new NoRespondersError('x'),
    new DeadlineError('x', 1),
    new RemoteError('x'),
    new UnavailableError('x'),
    new TypeError('x'),
  ]) {
    outcome = error;
    assert.is(await failureOf(bus.request('payments.charge', {}, { timeoutMs: 1 })), error);
  }
  const replies: (object | Error)[] = [
    { outcome: 'charged' },
    { outcome: 'later' },
    {},
    { outcome: 7 },
    new Error('x'),
  ];
  await bus.serve('payments.charge', 'payments', async () => {
    const reply = replies.shift()!;
    if (reply instanceof Error) throw reply;
    return reply;
  });
  for (let n = 0; n < 4; n++) await handler({});
  assert.instance(await failureOf(handler({})), Error);
  const found = await values();
  for (const [name, value] of [
    ['ok', 1],
    ['no_responders', 1],
    ['deadline', 1],
    ['remote', 1],
    ['unavailable', 1],
    ['other', 1],
  ] as const) {
    assert.is(found.get(`gift_bus_requests_total{subject="payments.charge",outcome="${name}"}`), value, name);
  }
  for (const [name, value] of [
    ['charged', 1],
    ['later', 1],
    ['ok', 2],
    ['error', 1],
  ] as const) {
    assert.is(found.get(`gift_worker_answers_total{subject="payments.charge",outcome="${name}"}`), value, name);
  }
  assert.is(found.get('gift_bus_request_duration_seconds_count{subject="payments.charge"}'), 1);
});

test.run();
