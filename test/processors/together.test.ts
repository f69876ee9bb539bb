/** The process managers together, on a log in memory and a worker that the test answers for. */
import pino from 'pino';
import * as assert from 'uvu/assert';
import { giftStream } from '../../src/domain/gift/events.js';
import { notificationStream } from '../../src/domain/notification.js';
import type { ParkedWork } from '../../src/domain/parked.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { enterWorld, REAL_WORLD } from '../../src/lib/world.js';
import type { DomainEvent } from '../../src/domain/decider.js';
import { type Bus, RemoteError } from '../../src/ports/bus.js';
import type { EventStore, RecordedEvent } from '../../src/ports/eventStore.js';
import type { Contact } from '../../src/processors/notification/address.js';
import { isSettled, type ProcessorDeps, runProcessors } from '../../src/processors/managers.js';
import type { Processors } from '../../src/processors/runner/run.js';
import { rejects } from '../support/assertions/rejects.js';
import { until } from '../support/assertions/until.js';
import type { MemoryEvents } from '../support/engines/memoryEvents.js';
import { memoryRecords } from '../support/engines/memoryRecords.js';
import { SUBJECTS } from '../support/providers/subjects.js';
import { type Bought, logSuite, type TestLog } from '../support/service/testLog.js';

const test = logSuite('process managers together');
const running = new Set<Processors>();
const failures: unknown[] = [];
test.after.each(async () => {
  await Promise.all([...running].map((one) => one.close()));
  running.clear();
  enterWorld(REAL_WORLD);
  assert.equal(failures.splice(0), [], 'the process managers have never failed themselves');
});

const person = (name: string, device_tokens: readonly string[] = []): Contact => ({
  name,
  phone_number: '+447700900001',
  device_tokens,
  locale: null,
});
const ANSWERS: Readonly<Record<string, object>> = {
  [SUBJECTS.charge]: { outcome: 'charged', provider: 'p', charge_id: 'ch_1', simulated: false },
  [SUBJECTS.send]: { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false },
  [SUBJECTS.refund]: { outcome: 'refunded', provider: 'p', refund_ref: 're_1', simulated: false },
};

interface Work extends Processors {
  /** What was asked for on the bus. */
  readonly requested: (readonly [subject: string, message: Readonly<Record<string, unknown>>])[];
  /** Waits until the log holds so many events of these types. @returns them */
  events(count: number, ...types: string[]): Promise<readonly RecordedEvent[]>;
  /** Waits until nothing is open any more. */
  idle(): Promise<void>;
}

/** Starts process managers that repeat nothing by themselves. `answers`: other ones than usual, by subject. */
function work(
  log: TestLog,
  answers: Readonly<Record<string, object | (() => Promise<object>)>> = {},
  more: Partial<ProcessorDeps> = {},
): Work {
  const requested: [string, Readonly<Record<string, unknown>>][] = [];
  const processors = runProcessors({
    events: log.events,
    records: memoryRecords(Date.now),
    bus: {
      request: async (subject: string, message: Readonly<Record<string, unknown>>) => {
        requested.push([subject, message]);
        const answer = answers[subject] ?? ANSWERS[subject];
        return typeof answer === 'function' ? (answer as () => Promise<object>)() : answer;
      },
    } as unknown as Bus,
    logger: pino(
      { level: 'info' },
      { write: (line: string) => void (line.includes('starting again') && failures.push(line)) },
    ),
    paymentMethod: async () => ({ kind: 'card', prepaid: false, customer: null }),
    contact: async (id) => (id === 'buyer' ? person('Ann') : id === 'bea' ? person('Bea', ['d']) : undefined),
    numberOf: async () => '+447700900002',
    openText: async (message) => message,
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: { retryMs: 60_000, retryAtMostMs: 60_000, attempts: 1 },
    ...more,
  });
  running.add(processors);
  const events: Work['events'] = async (count, ...types) => {
    await until(async () => (await log.all(...types)).length >= count, `${count} of ${types.join()}`);
    return log.all(...types);
  };
  const idle = (): Promise<void> =>
    until(async () => {
      const { position, open, steps } = processors.status();
      const inHand = [...steps.values()].some(({ inFlight }) => inFlight > 0);
      return position === (await log.events.end()) && open === 0 && !inHand;
    });
  return { ...processors, requested, events, idle };
}

const sent = ({ requested }: Work): unknown[] =>
  requested.filter(([subject]) => subject === SUBJECTS.send).map(([, { channel, to }]) => [channel, to]);
/** Paid for, without its gifts. */
async function charged(log: TestLog, receivers: readonly object[]): Promise<Bought & { readonly stream: string }> {
  const bought = await log.buy(receivers);
  const stream = transactionStream(bought.transactionId);
  await log.append(stream, 'PaymentCharged', { amount: 250 * receivers.length, provider: 'p', charge_id: 'ch_1' });
  return { ...bought, stream };
}
const issue = (log: TestLog, { transactionId, giftIds }: Bought, index: number, receiver: object = {}): Promise<void> =>
  log.append(giftStream(giftIds[index] ?? ''), 'GiftIssued', {
    transaction_id: transactionId,
    index,
    receiver,
    purchased_at: '2026-01-01T00:00:00.000Z',
    expires_on: '2099-01-01',
  });
const parkings = async (log: TestLog): Promise<unknown[]> =>
  (await log.all('WorkParked')).map(({ stream, data }) => {
    const { entity, step, times } = data as ParkedWork;
    return [stream, entity, step, times];
  });

test('charges, issues and notifies, and is idle then', async ({ log }) => {
  const one = work(log);
  const { transactionId, giftIds } = await log.buy([{ user_id: 'bea' }, { phone_id: 'p' }, { user_id: 'nobody' }, {}]);
  await one.events(3, 'NotificationSent', 'NotificationFailed');
  await one.idle();
  assert.equal(await log.types(transactionStream(transactionId)), [
    'GiftsPurchased',
    'ChargeStarted',
    'PaymentCharged',
  ]);
  const types = await Promise.all(
    giftIds.map(async (id) => [await log.types(giftStream(id)), (await log.types(notificationStream(id))).at(-1)]),
  );
  assert.equal(types, [
    [['GiftIssued'], 'NotificationSent'],
    [['GiftIssued'], 'NotificationSent'],
    [['GiftIssued'], 'NotificationFailed'],
    [['GiftIssued'], undefined],
  ]);
  assert.equal(new Set(sent(one).map(String)), new Set(['push,d', 'sms,+447700900002']));
  assert.equal([...one.status().steps.keys()].toSorted(), ['charge', 'issue', 'notify']);
  const [issued] = await log.all('GiftIssued');
  assert.match(issued?.metadata.commandId ?? '', /^issue-/);
  assert.is(issued?.metadata.causationId, (await log.all('PaymentCharged'))[0]?.id);
});

test('reads a purchase once for all its gifts', async ({ log }) => {
  const read: unknown[] = [];
  const events: EventStore = {
    ...log.events,
    read: async (stream, options) => {
      if (stream.startsWith('transaction-')) read.push(options?.limit);
      return log.events.read(stream, options);
    },
  };
  const one = work(log, {}, { events });
  await log.buy(Array.from({ length: 30 }, () => ({ phone_id: 'p' })));
  await one.events(30, 'NotificationSent');
  assert.equal(
    read.filter((limit) => limit === 1),
    [1],
  );
});

test('names no buyer who was erased since the last message', async ({ log }) => {
  let buyer: Contact | undefined = person('Ann');
  const one = work(log, {}, { contact: async () => buyer });
  await log.buy([{ phone_id: 'p' }]);
  await one.events(1, 'NotificationSent');
  buyer = undefined;
  await log.buy([{ phone_id: 'p' }]);
  await one.events(2, 'NotificationSent');
  const names = one.requested.filter(([subject]) => subject === SUBJECTS.send).map(([, shown]) => shown['sender_name']);
  assert.equal(names, ['Ann', '']);
});

test('looks a buyer up once for messages that are made at the same time', async ({ log }) => {
  let lookups = 0;
  let answer = (): void => undefined;
  const contact = async (): Promise<Contact> => {
    lookups++;
    await new Promise<void>((resolve) => (answer = resolve));
    return person('Ann');
  };
  const one = work(log, {}, { contact });
  await log.buy(Array.from({ length: 30 }, () => ({ phone_id: 'p' })));
  await one.events(30, 'NotificationStarted');
  await until(async () => lookups > 0);
  assert.is(lookups, 1);
  answer();
  await one.events(30, 'NotificationSent');
});

test('charges a new purchase without reading it first', async ({ log }) => {
  const read: string[] = [];
  const events: EventStore = {
    ...log.events,
    read: async (stream, options) => (read.push(stream), log.events.read(stream, options)),
  };
  const one = work(log, {}, { events });
  await log.buy([{}]);
  await one.events(1, 'GiftIssued');
  await one.idle();
  read.length = 0;
  await log.buy([{}]);
  await one.events(2, 'GiftIssued');
  await one.idle();
  assert.equal(read, []);
});

test('does nothing for a purchase that is over in the batch that shows it', async ({ log }) => {
  const one = work(log);
  await log.buy([{}]);
  await one.events(1, 'GiftIssued');
  await one.idle();
  const { given } = log.events as MemoryEvents;
  const [first] = await log.all('GiftsPurchased');
  const buy = (id: string): DomainEvent => ({ type: 'GiftsPurchased', data: { ...first?.data, transaction_id: id } });
  given('transaction-declined', buy('declined'), { type: 'PaymentDeclined', data: { provider: 'p', code: 'no' } });
  await one.idle();
  given('transaction-issued', buy('issued'));
  given('transaction-issued', { type: 'PaymentCharged', data: { amount: 250, provider: 'p', charge_id: 'ch' } });
  const refund = { refund_id: 'r', gift_ids: [], voided: false, reason: 'x' };
  given('transaction-issued', { type: 'RefundRequested', data: refund });
  given('transaction-issued', { type: 'NothingRefunded', data: { refund_id: 'r', kept: {} } });
  given('gift-issued', { type: 'GiftIssued', data: { transaction_id: 'issued', index: 0, receiver: {} } });
  await one.idle();
  assert.equal([one.requested.length, (await log.all('GiftIssued', 'ChargeStarted')).length], [1, 3]);
  assert.equal(
    [...one.status().steps.values()].map(({ failed }) => failed),
    [0, 0],
  );
});

test('starts no charge again that the feed shows as started', async ({ log }) => {
  const one = work(log, { [SUBJECTS.lookUpCharge]: { ...ANSWERS[SUBJECTS.charge] } });
  await log.buy([{}]);
  await one.events(1, 'GiftIssued');
  await one.idle();
  const { given } = log.events as MemoryEvents;
  const [first, start] = await log.all('GiftsPurchased', 'ChargeStarted');
  const data = { ...first?.data, transaction_id: 'started', seed: 'cd'.repeat(32) };
  given('transaction-started', { type: 'GiftsPurchased', data }, { type: 'ChargeStarted', data: start?.data ?? {} });
  await one.events(2, 'PaymentCharged');
  await one.idle();
  assert.equal(await log.types('transaction-started'), ['GiftsPurchased', 'ChargeStarted', 'PaymentCharged']);
  assert.is(one.requested.at(-1)?.[0], SUBJECTS.lookUpCharge, 'it was started long ago');
});

test('asks for nothing where a purchase was declined while it waited for its turn', async ({ log }) => {
  let answer: () => void = () => undefined;
  const answering = new Promise<void>((resolve) => (answer = resolve));
  const asked = async (): Promise<object> => (await answering, { ...ANSWERS[SUBJECTS.charge] });
  const one = work(log, { [SUBJECTS.charge]: asked });
  await log.buy([{}]);
  await until(() => one.requested.length === 1);
  for (let n = 1; n < 128; n++) await log.buy([{}]);
  const { transactionId } = await log.buy([{}]);
  await until(() => one.requested.length === 128);
  await log.append(transactionStream(transactionId), 'PaymentDeclined', { provider: 'p', code: 'no' });
  await until(async () => one.status().position === (await log.events.end()));
  answer();
  await one.idle();
  assert.equal([one.requested.length, one.status().steps.get('charge')?.failed], [128, 0]);
});

test('asks for nothing again of a purchase that was declined while it waited', async ({ log }) => {
  const bus = {
    async request() {
      const [bought] = await log.all('GiftsPurchased');
      await log.append(bought?.stream ?? '', 'PaymentDeclined', { provider: 'p', code: 'no' });
      await until(async () => one.status().position === (await log.events.end()));
      throw new RemoteError('the answer is lost');
    },
  } as unknown as Bus;
  const one: Work = work(log, {}, { bus, retryPolicy: { retryMs: 1, retryAtMostMs: 1 } });
  await log.buy([{}]);
  await until(() => one.status().steps.get('charge')?.failed === 1);
  await one.idle();
  assert.equal(one.status().steps.get('charge'), { inFlight: 0, failed: 1, parked: 0 });
});

test('issues the gifts of a charge that was parked once its answer comes', async ({ log }) => {
  const one = work(log, { [SUBJECTS.charge]: { outcome: 'impossible', cause: 'not here' } });
  const { transactionId, giftIds } = await log.buy([{}, {}, {}]);
  await one.events(1, 'WorkParked');
  await one.idle();
  assert.equal(await parkings(log), [['parked-purchase', transactionId, 'charge', 1]]);
  await issue(log, { transactionId, giftIds }, 1);
  await log.append(transactionStream(transactionId), 'PaymentCharged', { amount: 750, provider: 'p', charge_id: 'ch' });
  await one.events(3, 'GiftIssued');
  await one.idle();
  for (const id of giftIds) assert.equal(await log.types(giftStream(id)), ['GiftIssued']);
});

test('asks for a charge again that support retries, and parks it again', async ({ log }) => {
  const one = work(log, { [SUBJECTS.charge]: { outcome: 'impossible', cause: 'not here' } });
  const { transactionId } = await log.buy([{}]);
  for (const times of [1, 2, 3]) {
    await one.events(times, 'WorkParked');
    await one.idle();
    const retried = { entity: transactionId, transaction_id: transactionId, step: 'charge', times, reason: 'r' };
    if (times < 3) await log.append('parked-purchase', 'WorkRetried', retried);
  }
  assert.equal(
    await parkings(log),
    [1, 2, 3].map((times) => ['parked-purchase', transactionId, 'charge', times]),
  );
  assert.is(one.requested.length, 3);
});

test('holds no gift up by one that can not be issued, and issues that on a retry', async ({ log }) => {
  const { transactionId, giftIds, stream } = await charged(log, [{}, {}, { phone_id: 'p' }]);
  const [first = ''] = giftIds;
  let broken = true;
  const events: EventStore = {
    ...log.events,
    append: async (to, ...rest) => {
      if (broken && to === giftStream(first)) {
        await until(async () => (await log.all('GiftIssued')).length === 2);
        throw new TypeError('unwritable');
      }
      return log.events.append(to, ...rest);
    },
  };
  const one = work(log, {}, { events });
  await one.events(1, 'WorkParked');
  await one.events(1, 'NotificationSent');
  await one.idle();
  assert.equal(await parkings(log), [['parked-purchase', transactionId, 'issue', 1]]);
  assert.is((await log.all('GiftIssued')).length, 2);
  const work_ = {
    name: 'purchase',
    work: { entity: transactionId, transaction_id: transactionId, step: 'issue' },
  } as const;
  assert.is(await isSettled(log.events, work_), false);
  broken = false;
  const retried = { ...work_.work, times: 1, reason: 'r' };
  await log.append('parked-purchase', 'WorkRetried', retried);
  await one.events(3, 'GiftIssued');
  await one.idle();
  assert.equal(
    [await log.types(giftStream(first)), await log.types(stream)],
    [['GiftIssued'], ['GiftsPurchased', 'PaymentCharged']],
  );
  assert.is(await isSettled(log.events, work_), true);
  // Nothing is left to do for another retry.
  await log.append('parked-purchase', 'WorkRetried', retried);
  await one.idle();
  assert.equal([(await log.all('GiftIssued')).length, one.status().steps.get('issue')?.inFlight], [3, 0]);
});

test('issues no further gift of a purchase that is parked while its gifts are issued', async ({ log }) => {
  let now = 0;
  enterWorld({ ...REAL_WORLD, ticks: () => (now += 5) });
  const { transactionId } = await charged(
    log,
    Array.from({ length: 3_000 }, () => ({})),
  );
  const parked = { entity: transactionId, transaction_id: transactionId, step: 'issue', cause: 'x', event_id: 'e' };
  let appended = 0;
  const events: EventStore = {
    ...log.events,
    append: async (...args) => {
      if (++appended === 10) await log.append('parked-purchase', 'WorkParked', { ...parked, times: 1 });
      return log.events.append(...args);
    },
  };
  const one = work(log, {}, { events, leaseMs: 600_000_000 });
  await one.events(1, 'WorkParked');
  await one.idle();
  const { length } = await log.all('GiftIssued');
  assert.ok(length < 3_000, `${length} were issued`);
});

test('parks a purchase once though two of its gifts can not be issued, one of them later', async ({ log }) => {
  const { transactionId, giftIds } = await charged(log, [{}, {}]);
  let both = false;
  const events: EventStore = {
    ...log.events,
    append: async (to, ...rest) => {
      if (!to.startsWith('gift-')) return log.events.append(to, ...rest);
      if (to === giftStream(giftIds[0] ?? '')) await until(() => both);
      else {
        both = true;
        await until(async () => (await log.all('WorkParked')).length === 1);
        await until(async () => one.status().position === (await log.events.end()));
      }
      throw new TypeError('unwritable');
    },
  };
  const one: Work = work(log, {}, { events });
  await until(() => one.status().steps.get('issue')?.failed === 2);
  await one.idle();
  assert.equal(await parkings(log), [['parked-purchase', transactionId, 'issue', 1]]);
});

test('ends a retried purchase that is declined meanwhile', async ({ log }) => {
  const { transactionId } = await log.buy([{}]);
  const stream = transactionStream(transactionId);
  const parked = { entity: transactionId, transaction_id: transactionId, step: 'charge' };
  await log.append('parked-purchase', 'WorkParked', { ...parked, cause: 'x', event_id: 'e', times: 1 });
  await log.append('parked-purchase', 'WorkRetried', { ...parked, times: 1, reason: 'r' });
  await log.append(stream, 'PaymentDeclined', { provider: 'p', code: 'no' });
  const one = work(log);
  await one.idle();
  assert.equal([one.requested, await log.types(stream)], [[], ['GiftsPurchased', 'PaymentDeclined']]);
});

test('notifies nobody of a gift that a refund is about to cancel, and the others once it has decided', async ({
  log,
}) => {
  const bought = await charged(log, [{ phone_id: 'p' }, { phone_id: 'q' }, { phone_id: 'r' }]);
  const [cancelled = '', redeemed = '', other = ''] = bought.giftIds;
  for (const index of [0, 1, 2]) await issue(log, bought, index, { phone_id: `p${index}` });
  const gift_ids = [cancelled, redeemed];
  await log.append(bought.stream, 'RefundRequested', { refund_id: 'r1', gift_ids, voided: false, reason: 'x' });
  let decide: () => void = () => undefined;
  const deciding = new Promise<void>((resolve) => (decide = resolve));
  const events: EventStore = {
    ...log.events,
    append: async (stream, made, expected) => {
      if (made[0]?.type === 'RefundStarted') await deciding;
      return log.events.append(stream, made, expected);
    },
  };
  const one = work(log, {}, { events });
  await one.events(1, 'NotificationSent');
  await until(() => one.status().steps.get('notify')?.inFlight === 2);
  assert.equal(await log.types(notificationStream(other)), ['NotificationStarted', 'NotificationSent']);
  assert.is(sent(one).length, 1);
  await log.append(giftStream(redeemed), 'GiftUnblocked', { transaction_id: bought.transactionId, cause: 'support' });
  decide();
  await one.events(2, 'NotificationFailed');
  await one.idle();
  assert.equal(
    (await log.all('NotificationFailed')).map(({ data }) => (data as { readonly cause: string }).cause),
    ['gift is cancelled', 'gift is cancelled'],
  );
  assert.equal(
    [sent(one).length, (await log.types(bought.stream)).slice(2)],
    [1, ['RefundRequested', 'RefundStarted', 'GiftsRefunded']],
  );
});

test('parks a refund that is refused, tries it once for a retry, and ends one that is over', async ({ log }) => {
  const refused = { outcome: 'refused', provider: 'p', code: 'no', simulated: false };
  const bought = await charged(log, [{}]);
  const one = work(log, { [SUBJECTS.refund]: refused, [SUBJECTS.lookUpRefund]: { outcome: 'never' } });
  const request = { refund_id: 'r1', gift_ids: bought.giftIds, voided: false, reason: 'x' };
  await log.append(bought.stream, 'RefundRequested', request);
  for (const times of [1, 2]) {
    await one.events(times, 'WorkParked');
    await one.idle();
    const retried = { entity: 'r1', transaction_id: bought.transactionId, step: 'refund', times, reason: 'r' };
    if (times === 1) await log.append('parked-refund', 'WorkRetried', retried);
  }
  assert.equal(
    await parkings(log),
    [1, 2].map((times) => ['parked-refund', 'r1', 'refund', times]),
  );
  assert.equal(
    one.requested.filter(([subject]) => subject === SUBJECTS.refund).map(([, message]) => message['attempt']),
    [1, 2],
  );
  const done = { refund_id: 'r1', attempt: 2, gift_ids: bought.giftIds, amount: 250, provider: 'p', refund_ref: 're' };
  await log.append(bought.stream, 'GiftsRefunded', done);
  const again = { entity: 'r1', transaction_id: bought.transactionId, step: 'refund', times: 2, reason: 'r' };
  await log.append('parked-refund', 'WorkRetried', again);
  await one.idle();
  assert.is((await log.all('WorkParked')).length, 2);
});

test('blocks and frees the gifts of a dispute, and parks money that no gift makes up for', async ({ log }) => {
  const bought = await charged(log, [{}]);
  const [gift = ''] = bought.giftIds;
  const one = work(log);
  await one.events(1, 'GiftIssued');
  const dispute = { provider: 'p', dispute_id: 'dp' };
  await log.append(bought.stream, 'DisputeOpened', { ...dispute, amount: 250, reason: 'fraudulent' });
  await one.events(1, 'DisputeSettled');
  await log.append(bought.stream, 'DisputeClosed', { ...dispute, outcome: 'won' });
  await one.events(2, 'DisputeSettled');
  await one.idle();
  assert.equal(await log.types(giftStream(gift)), ['GiftIssued', 'GiftBlocked', 'GiftUnblocked']);
  assert.equal(
    (await log.all('DisputeSettled')).map(({ data }) => data),
    [
      { dispute_id: 'dp', blocked: true, gifts: 1 },
      { dispute_id: 'dp', blocked: false, gifts: 0 },
    ],
  );
  await log.append(bought.stream, 'RefundedAtProvider', { provider: 'p', charge_id: 'ch_1', amount: 300, total: 300 });
  await one.events(1, 'WorkParked');
  await one.idle();
  assert.equal(await parkings(log), [['parked-refund', bought.transactionId, 'provider refund', 1]]);
  assert.is((await log.types(giftStream(gift))).at(-1), 'GiftCancelled');
});

test('ends a retried dispute or notification that needs nothing any more', async ({ log }) => {
  const bought = await charged(log, [{}]);
  await issue(log, bought, 0);
  const retried = { transaction_id: bought.transactionId, times: 1, reason: 'r' };
  await log.append('parked-dispute', 'WorkRetried', { ...retried, entity: 'dp', step: 'dispute' });
  await log.append('parked-notification', 'WorkRetried', { ...retried, entity: bought.giftIds[0], step: 'notify' });
  const one = work(log);
  await one.idle();
  assert.equal([await log.all('WorkParked'), one.requested], [[], []]);
  await rejects(
    isSettled(log.events, { name: 'refund', work: { entity: 'e', transaction_id: 't', step: 'odd' } }),
    Error,
    /parked by refund under an unknown step, odd/,
  );
});

test.run();
