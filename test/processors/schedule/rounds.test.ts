/** Which gifts a round of expiries or reminders looks at, when, and what becomes of a round that fails. */
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { Contact } from '../../../src/processors/notification/address.js';
import type { DayRange, Due } from '../../../src/processors/schedule/due.js';
import type { Round } from '../../../src/processors/schedule/expiryRounds.js';
import { type ReminderDeps, reminderRounds } from '../../../src/processors/schedule/remind.js';
import { expiryEventRounds } from '../../../src/processors/schedule/tellExpiry.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { rejects } from '../../support/assertions/rejects.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { type Bought, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('rounds of expiries and reminders');

const going = new AbortController().signal;
/** Of the gifts of tests the last valid day is 2099-01-01. */
const NEAR = '2098-12-02T09:30:00.000Z';
const user = (name: string, locale: string | null, phone_number: string | null = null): [string, Contact] => [
  name,
  { name, phone_number, device_tokens: ['d'], locale },
];
const CONTACTS = new Map([
  user('london', null),
  user('tokyo', 'ja-JP'),
  user('lima', 'es-PE'),
  user('british', 'ja-JP', '+447700900001'),
]);

interface Rounds {
  readonly expiry: Round;
  readonly reminders: Round;
  /** The ranges that were asked for. */
  readonly ranges: DayRange[];
  /** Streams that were read. */
  readonly read: string[];
  /** Users and numbers that were looked up. */
  readonly lookedUp: string[];
  readonly records: ReturnType<typeof memoryRecords>;
}

interface Given {
  readonly pages?: readonly (readonly Due[])[];
  readonly records?: Rounds['records'];
  readonly reached?: (position: string) => boolean;
  readonly mayAct?: () => void;
  readonly days?: readonly number[];
  /** The last valid day of what is due, which is found only by a range that has it. */
  readonly day?: string;
  /** Called before a stream is read. */
  readonly onRead?: (stream: string) => Promise<void> | void;
}

function rounds(log: TestLog, given: Given = {}): Rounds {
  const { pages = [[]], records = memoryRecords(Date.now), reached = () => true, onRead } = given;
  const ranges: DayRange[] = [];
  const read: string[] = [];
  const lookedUp: string[] = [];
  const deps: ReminderDeps = {
    events: {
      ...log.events,
      read: async (stream, options) => {
        read.push(stream);
        await onRead?.(stream);
        return log.events.read(stream, options);
      },
    },
    writer: openWriter(log.events, Date.now),
    mayAct: given.mayAct ?? (() => undefined),
    records,
    due: {
      serves: async () => true,
      reached: async (position) => reached(position),
      async *expiring(range) {
        ranges.push(range);
        const { day = range.gte } = given;
        if (range.gte <= day && day <= range.lte) yield* pages;
      },
    },
    contact: async (id) => (lookedUp.push(id), CONTACTS.get(id)),
    numberOf: async (id) => (lookedUp.push(id), id === 'erased' ? undefined : '+447700900002'),
    days: given.days ?? [30, 7],
    hours: { from: 9 * 60, to: 20 * 60 },
  };
  return { expiry: expiryEventRounds(deps), reminders: reminderRounds(deps), ranges, read, lookedUp, records };
}

/** Bought long ago and paid for. */
async function bought(log: TestLog, ...receivers: readonly object[]): Promise<Bought & { readonly due: Due }> {
  const one = await log.buy(receivers, { at: '2098-01-01T00:00:00.000Z' });
  const charge = { amount: 1, provider: 'p', charge_id: 'c' };
  await log.append(transactionStream(one.transactionId), 'PaymentCharged', charge);
  return { ...one, due: { id: one.transactionId } };
}

const storedDay = async ({ records }: Rounds, name: string): Promise<unknown> =>
  (await records.get(`schedule/${name}`))?.value;
const range = (gte: string, lte: string): DayRange => ({ gte, lte });

test('looks at the days since the last one that was done, or at a month of them', async ({ log }) => {
  const first = rounds(log);
  await first.expiry('2098-12-02T01:00:00.000Z', going);
  assert.equal(first.ranges, [range('2098-10-31', '2098-12-01'), range('2098-12-01', '2099-01-01')]);
  assert.equal(await storedDay(first, 'expiry'), { logId: log.events.logId, day: '2098-12-02' });
  await first.expiry('2098-12-02T23:59:59.000Z', going);
  assert.is(first.ranges.length, 2, 'once a day');
  await first.expiry('2098-12-05T00:00:00.000Z', going);
  assert.equal(first.ranges.slice(2), [range('2098-12-01', '2098-12-04'), range('2099-01-01', '2099-01-04')]);
  const restarted = rounds(log, { records: first.records });
  await restarted.expiry('2098-12-05T05:00:00.000Z', going);
  assert.equal(restarted.ranges, [range('2098-12-04', '2098-12-04'), range('2099-01-04', '2099-01-04')]);
  assert.is((await first.records.get('schedule/expiry'))?.version, 2, 'it is stored once a day');
});

test('takes nothing from the record of another log', async ({ log }) => {
  const { expiry, ranges, records } = rounds(log);
  await records.put('schedule/expiry', { logId: 'another', day: '2098-12-01' });
  await expiry('2098-12-02T01:00:00.000Z', going);
  assert.is(ranges[0]?.gte, '2098-10-31');
});

test('waits for the read model to reach the end of the log, and for none where the log is empty', async ({ log }) => {
  let behind = true;
  const asked: string[] = [];
  const one = rounds(log, { reached: (position) => (asked.push(position), !behind) });
  await one.expiry('2098-12-01T01:00:00.000Z', going);
  assert.equal([asked, one.ranges.length], [[], 2], 'an empty log has no end');
  await bought(log, {});
  await one.expiry(NEAR, going);
  assert.equal([asked, one.ranges.length], [[await log.events.end()], 2]);
  assert.equal(await storedDay(one, 'expiry'), { logId: log.events.logId, day: '2098-12-01' });
  behind = false;
  await one.expiry(NEAR, going);
  assert.is(one.ranges.length, 4);
});

test('does a round again that was cut short', async ({ log }) => {
  const [first, second] = [await bought(log, {}), await bought(log, {})];
  const ending = new AbortController();
  const one = rounds(log, { pages: [[first.due], [second.due]], onRead: () => ending.abort() });
  await one.expiry(NEAR, ending.signal);
  assert.equal([await storedDay(one, 'expiry'), (await log.all('GiftExpiring')).length], [undefined, 1]);
  await one.expiry(NEAR, going);
  assert.equal((await log.all('GiftExpiring')).length, 2);
  assert.equal(await storedDay(one, 'expiry'), { logId: log.events.logId, day: '2098-12-02' });
});

test('tries all that is due, says the first failure, and does the day again', async ({ log }) => {
  const all = await Promise.all([1, 2, 3].map(() => bought(log, {})));
  const [bad = '', , worse = ''] = all.map(({ transactionId }) => transactionId);
  let broken = true;
  const one = rounds(log, {
    pages: all.map(({ due }) => [due]),
    onRead(stream) {
      if (broken && stream === transactionStream(bad)) throw new TypeError('the first failure');
      if (broken && stream === transactionStream(worse)) throw new RangeError('the second failure');
    },
  });
  await rejects(one.expiry(NEAR, going), TypeError, /the first failure/);
  const told = async (): Promise<string[]> => (await log.all('GiftExpiring')).map(({ stream }) => stream);
  assert.equal(await told(), [giftStream(all[1]?.giftIds[0] ?? '')]);
  assert.is(await storedDay(one, 'expiry'), undefined);
  broken = false;
  await one.expiry(NEAR, going);
  assert.is((await told()).length, 3);
});

test('reads four purchases at a time', async ({ log }) => {
  let [reading, most] = [0, 0];
  const due = Array.from({ length: 20 }, (_, n) => ({ id: `t${n}` }));
  const one = rounds(log, {
    pages: [due],
    async onRead() {
      most = Math.max(most, ++reading);
      await new Promise((resolve) => setImmediate(resolve));
      reading--;
    },
  });
  await one.expiry(NEAR, going);
  assert.equal([most, one.read.length], [4, 40]);
});

test('tells the expiry of paid gifts once, as what follows from their purchase', async ({ log }) => {
  const paid = await bought(log, {}, {});
  const unpaid = await log.buy([{}], { at: '2098-01-01T00:00:00.000Z' });
  const pages = [[paid.due, { id: unpaid.transactionId }, { id: 'unknown' }]];
  await rounds(log, { pages }).expiry(NEAR, going);
  await rounds(log, { pages }).expiry(NEAR, going);
  const told = await log.all('GiftExpiring');
  assert.equal(told.map(({ stream }) => stream).toSorted(), paid.giftIds.map(giftStream).toSorted());
  const [purchase] = await log.events.read(transactionStream(paid.transactionId));
  for (const { metadata } of told)
    assert.equal(
      [metadata.commandId, metadata.causationId, metadata.correlationId],
      [`expiry-${paid.transactionId}-2098-12-02`, purchase?.id, log.correlationId],
    );
});

test('tells the expiry of an extended gift by itself, where it is known', async ({ log }) => {
  const { giftIds, transactionId } = await bought(log, {}, {});
  const [giftId = ''] = giftIds;
  const issued = {
    transaction_id: transactionId,
    index: 0,
    receiver: {},
    purchased_at: '2098-01-01T00:00:00.000Z',
    expires_on: '2099-01-01',
  };
  await log.append(giftStream(giftId), 'GiftIssued', issued);
  const later = { expires_on: '2099-06-01', voucher_expires_at: null, reason: '' };
  await log.append(giftStream(giftId), 'GiftExtended', later, '2098-11-01T00:00:00.000Z');
  const due = { id: `gift/${giftId}`, giftId };
  const one = rounds(log, { pages: [[due]] });
  for (const now of ['2099-05-01T01:00:00.000Z', '2099-05-02T01:00:00.000Z']) await one.expiry(now, going);
  const [told, ...more] = await log.all('GiftExpiring');
  assert.equal([told?.stream, told?.data, more], [giftStream(giftId), { expires_on: '2099-06-01' }, []]);
  const [, extended] = await log.events.read(giftStream(giftId));
  assert.equal([told?.metadata.commandId, told?.metadata.causationId], [`expiry-${giftId}-2099-05-02`, extended?.id]);
  const wrong = rounds(log, { pages: [[{ id: 'gift/none', giftId: 'none' }]] });
  await rejects(wrong.expiry(NEAR, going), Error, /extended and is not there/);
});

test('changes no gift once another process has the work', async ({ log }) => {
  const { due, giftIds, transactionId } = await bought(log, { user_id: 'london' });
  const [giftId = ''] = giftIds;
  const issued = { transaction_id: transactionId, index: 0, receiver: {}, expires_on: '2099-01-01' };
  await log.append(giftStream(giftId), 'GiftIssued', { ...issued, purchased_at: '2098-01-01T00:00:00.000Z' });
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  await rounds(log, { pages: [[due]], mayAct }).expiry('2098-06-01T00:00:00.000Z', going);
  for (const one of [due, { id: `gift/${giftId}`, giftId }]) {
    const { expiry } = rounds(log, { pages: [[one]], mayAct });
    await rejects(expiry(NEAR, going), NotOursError, /passed on/);
  }
  assert.equal(await log.types(giftStream(giftId)), ['GiftIssued']);
});

test('looks for reminders where it may be their day somewhere, once an hour', async ({ log }) => {
  const one = rounds(log);
  await one.reminders('2098-12-02T01:00:00.000Z', going);
  assert.equal(one.ranges, [range('2098-12-31', '2099-01-02'), range('2098-12-08', '2098-12-10')]);
  await one.reminders('2098-12-02T01:59:59.000Z', going);
  assert.is(one.ranges.length, 2, 'once an hour');
  await one.reminders('2098-12-02T02:00:00.000Z', going);
  assert.is(one.ranges.length, 4);
  assert.equal(await storedDay(one, 'reminders'), { logId: log.events.logId, day: '2098-12-02' });
  const later = rounds(log, { records: one.records, days: [7] });
  await later.reminders('2098-12-04T02:00:00.000Z', going);
  await later.reminders('2098-12-03T02:00:00.000Z', going);
  assert.equal(
    later.ranges,
    [range('2098-12-08', '2098-12-12'), range('2098-12-09', '2098-12-11')],
    'since the last day that was done, or the present one where the clock was set back',
  );
});

test('reminds after a pause that ended at night, also where the process starts again before the morning', async ({
  log,
}) => {
  const { due } = await bought(log, { user_id: 'london' }, { user_id: 'tokyo' });
  const before = rounds(log, { day: '2099-01-01' });
  await before.reminders('2098-12-01T10:00:00.000Z', going);
  const night = rounds(log, { pages: [[due]], day: '2099-01-01', records: before.records });
  await night.reminders('2098-12-06T22:00:00.000Z', going);
  await night.reminders('2098-12-06T23:00:00.000Z', going);
  assert.is((await log.all('ReminderDue')).length, 0, 'it is night in London, and morning in Tokyo only at midnight');
  const again = rounds(log, { pages: [[due]], day: '2099-01-01', records: before.records });
  await again.reminders('2098-12-07T00:00:00.000Z', going);
  await again.reminders('2098-12-07T08:00:00.000Z', going);
  assert.equal(
    [(await log.all('ReminderDue')).length, await storedDay(again, 'reminders')],
    [1, { logId: log.events.logId, day: '2098-12-01' }],
  );
  await again.reminders('2098-12-07T09:00:00.000Z', going);
  assert.equal(
    [(await log.all('ReminderDue')).length, await storedDay(again, 'reminders')],
    [2, { logId: log.events.logId, day: '2098-12-07' }],
  );
});

test('reminds nobody where there are no reminders', async ({ log }) => {
  const { due } = await bought(log, { user_id: 'london' });
  const one = rounds(log, { pages: [[due]], days: [] });
  await one.reminders(NEAR, going);
  assert.equal([one.ranges, await log.all('ReminderDue'), await storedDay(one, 'reminders')], [[], [], undefined]);
});

test('reminds in the hours of each day where the receiver is, by number, else by locale', async ({ log }) => {
  const receivers = [{ user_id: 'london' }, { user_id: 'tokyo' }, { user_id: 'british' }, { phone_id: 'p' }, {}];
  const others = [{ user_id: 'unknown' }, { phone_id: 'erased' }];
  const { due, giftIds, transactionId } = await bought(log, ...receivers, ...others);
  const one = rounds(log, { pages: [[due]] });
  const told = async (): Promise<number[]> =>
    (await log.all('ReminderDue'))
      .map(({ stream }) => giftIds.findIndex((id) => giftStream(id) === stream))
      .toSorted((one, other) => one - other);
  await one.reminders('2098-12-01T23:59:00.000Z', going);
  assert.equal(await told(), []);
  await one.reminders('2098-12-02T00:00:00.000Z', going);
  assert.equal(await told(), [1], 'nine in the morning in Tokyo');
  await one.reminders('2098-12-02T08:00:00.000Z', going);
  assert.equal(await told(), [1]);
  await one.reminders('2098-12-02T09:00:00.000Z', going);
  assert.equal(await told(), [0, 1, 2, 3]);
  const [reminder] = (await log.all('ReminderDue')).slice(1);
  assert.equal(reminder?.data, {
    transaction_id: transactionId,
    days: 30,
    expires_on: '2099-01-01',
    until: '2098-12-02T20:00:00.000Z',
  });
  assert.is(reminder?.metadata.commandId, `remind-${transactionId}-2098-12-02T09`);
  for (const hour of [10, 19, 22]) await one.reminders(`2098-12-02T${hour}:00:00.000Z`, going);
  assert.is((await told()).length, 4, 'once');
  const reminded = ['GiftIssued', 'ReminderDue'];
  assert.equal(await Promise.all(giftIds.map((id) => log.types(giftStream(id)))), [
    ...Array.from({ length: 4 }, () => reminded),
    ...Array.from({ length: 3 }, () => []),
  ]);
});

test('reminds the owner of a gift whose number is another user’s by now, in the hours of their own day', async ({
  log,
}) => {
  await log.append('phone-moved', 'PhoneTaken', { user_id: 'tokyo' }, '2097-01-01T00:00:00.000Z');
  const { due, giftIds } = await bought(log, { phone_id: 'moved' });
  await log.append('phone-moved', 'PhoneGivenUp', { user_id: 'tokyo' }, '2098-02-01T00:00:00.000Z');
  await log.append('phone-moved', 'PhoneTaken', { user_id: 'london' }, '2098-02-02T00:00:00.000Z');
  const one = rounds(log, { pages: [[due]] });
  await one.reminders('2098-12-02T00:00:00.000Z', going);
  assert.equal(
    await log.types(giftStream(giftIds[0] ?? '')),
    ['GiftIssued', 'ReminderDue'],
    'nine in the morning in Tokyo',
  );
  assert.equal(one.lookedUp, ['tokyo']);
});

test('reminds on the day itself where it ends later than that of UTC', async ({ log }) => {
  const { due } = await bought(log, { user_id: 'lima' });
  const one = rounds(log, { pages: [[due]], days: [0] });
  await one.reminders('2099-01-02T00:30:00.000Z', going);
  assert.is((await log.all('ReminderDue')).length, 1, 'half past seven in the evening');
});

test('looks a holder up only where a reminder may be due', async ({ log }) => {
  const { due } = await bought(log, { user_id: 'london' }, { phone_id: 'p' });
  const far = rounds(log, { pages: [[due]] });
  await far.reminders('2098-11-20T12:00:00.000Z', going);
  assert.equal(far.lookedUp, []);
  const near = rounds(log, { pages: [[due]] });
  await near.reminders('2098-12-01T12:00:00.000Z', going);
  assert.equal([...new Set(near.lookedUp)].toSorted(), ['london', 'p']);
});

test('reads no purchase again on a day on which none of its holders waits', async ({ log }) => {
  const [done, other, waits] = [
    await bought(log, { user_id: 'tokyo' }),
    await bought(log, {}),
    await bought(log, { user_id: 'tokyo' }, { user_id: 'london' }),
  ];
  const one = rounds(log, { pages: [[done.due, other.due, waits.due]], days: [30] });
  const readIn = async (now: string): Promise<string[]> => {
    one.read.length = 0;
    await one.reminders(now, going);
    const names = new Map([
      [transactionStream(done.transactionId), 'done'],
      [transactionStream(other.transactionId), 'other'],
      [transactionStream(waits.transactionId), 'waits'],
    ]);
    return one.read.flatMap((stream) => names.get(stream) ?? []).toSorted();
  };
  assert.equal(await readIn('2098-12-02T01:00:00.000Z'), ['done', 'other', 'waits']);
  assert.equal(await readIn('2098-12-02T02:00:00.000Z'), ['waits'], 'it is night in London');
  assert.equal(await readIn('2098-12-02T09:00:00.000Z'), ['waits']);
  assert.equal(await readIn('2098-12-02T10:00:00.000Z'), [], 'reminded');
  assert.equal(await readIn('2098-12-03T00:00:00.000Z'), ['done', 'other', 'waits'], 'another day');
});

test.run();
