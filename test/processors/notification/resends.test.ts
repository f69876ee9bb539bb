import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../../src/commands/context.js';
import type { ParkedDeps } from '../../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../../src/commands/parkedWork.js';
import { type ReassignDeps, reassignGift } from '../../../src/commands/reassignGift.js';
import { resendGift } from '../../../src/commands/resendGift.js';
import { phoneSubject } from '../../../src/domain/personalFields.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { faultyBus } from '../../support/faults/faultyBus.js';
import { type House, phone } from '../../support/service/house.js';
import { houseSuite } from '../../support/service/houseSuite.js';
import { mortal } from '../../support/faults/mortal.js';
import { refusal } from '../../support/assertions/rejects.js';

const test = houseSuite('resends');
test.before.each(async ({ house }) => {
  await house.work();
});

const context = (): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: new Date().toISOString(),
});

/** As support works; the house's contacts are its users. */
const desk = (house: House): ReassignDeps & ParkedDeps =>
  ({
    events: house.events,
    gifts: { get: async () => undefined, reached: async () => true },
    accounts: {
      get: async (id: string) =>
        house.contacts.has(id.slice('user-'.length)) ? { entry: 'user', active: true, roles: [] } : undefined,
      reached: async () => true,
    },
    parked: { getMany: async (ids: readonly string[]) => ids.map(() => undefined) },
    subjects: house.subjects,
  }) as unknown as ReassignDeps & ParkedDeps;

const user = (house: House, id: string, phone_number: string): void =>
  void house.contacts.set(id, { name: id, phone_number, device_tokens: [], locale: null });
const sent = (house: House): unknown[] =>
  house.lines
    .filter(({ msg }) => msg === 'simulated notification sent')
    .map(({ to }) => (to as string[])[0]?.slice(-3));
const told = async (house: House, count: number): Promise<void> =>
  house.until(async () => (await house.all('NotificationSent', 'NotificationFailed')).length === count);
const story = async (house: House, giftId: string): Promise<string[]> =>
  (await house.events.read(`notification-${giftId}`)).map(
    ({ type, data }) => `${type.slice('Notification'.length)} ${(data as { attempt: number }).attempt}`,
  );

/** The bus, noting what is sent, with the answers of one subject replaced while `answer` gives any. */
function watched(
  bus: Bus,
  seen: Record<string, unknown>[],
  answer: (subject: string) => Promise<object> | undefined = () => undefined,
): Bus {
  return {
    ...bus,
    request: async <R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> => {
      if (subject === 'notifications.send') seen.push(payload as Record<string, unknown>);
      return (answer(subject) ?? bus.request(subject, payload, options)) as Promise<R>;
    },
  };
}

test('resends once for each request, with its number', async ({ house }) => {
  const seen: Record<string, unknown>[] = [];
  house.process({ bus: watched(house.bus, seen) });
  const {
    giftIds: [giftId = ''],
  } = await house.buy([phone(1)]);
  await told(house, 1);
  const asked = context();
  const first = await resendGift(desk(house), giftId, asked, 'did not arrive');
  assert.equal((await resendGift(desk(house), giftId, asked, 'did not arrive')).replayed, true);
  await told(house, 2);
  await resendGift(desk(house), giftId, context(), 'deleted it');
  await told(house, 3);
  assert.equal(await story(house, giftId), [
    'Started 1',
    'Sent 1',
    'Requested 2',
    'Started 2',
    'Sent 2',
    'Requested 3',
    'Started 3',
    'Sent 3',
  ]);
  assert.equal(
    seen.map(({ attempt, launch_url }) => [attempt, launch_url]),
    [
      [undefined, `http://gift.test/g/${giftId}`],
      [2, `http://gift.test/g/${giftId}?n=2`],
      [3, `http://gift.test/g/${giftId}?n=3`],
    ],
  );
  assert.is(sent(house).length, 3);
  const started = (await house.all('NotificationStarted'))[1];
  assert.equal(started?.data, { ...started?.data, attempt: 2, asked_by: first.own[0]?.id });
  assert.is(started?.metadata.causationId, first.own[0]?.id);
});

test('refuses a resend while a notification is under way', async ({ house }) => {
  const phone_number = '+447700900001';
  const [phone_id = ''] = await house.subjects.ids([phoneSubject(phone_number)]);
  const {
    giftIds: [giftId = '', shared = ''],
  } = await house.buy([{ phone_id }, {}]);
  await refused(resendGift(desk(house), giftId, context(), 'x'), 'gift_not_found');
  const processors = house.process({
    bus: watched(house.bus, [], (subject) =>
      subject.startsWith('notifications') ? Promise.reject(new UnavailableError('down')) : undefined,
    ),
  });
  await house.until(
    async () =>
      (await house.types(`notification-${giftId}`)).length === 1 && (await house.types(`gift-${shared}`)).length === 1,
  );
  await refused(resendGift(desk(house), giftId, context(), 'x'), 'notification_pending');
  await refused(
    reassignGift(desk(house), giftId, context(), { phone_number: '+447700900002' }, 'x'),
    'notification_pending',
  );
  assert.equal(
    (await reassignGift(desk(house), giftId, context(), { phone_number }, 'x')).own,
    [],
    'theirs already: nothing changes for whoever is being told',
  );
  await refused(resendGift(desk(house), shared, context(), 'x'), 'gift_has_no_receiver');
  await processors.close();
  house.process();
  await told(house, 1);
  await house.append(`gift-${giftId}`, 'GiftBlocked', { cause: 'support', reason: 'x' });
  await refused(resendGift(desk(house), giftId, context(), 'x'), 'gift_blocked');
});

async function refused(promise: Promise<unknown>, code: string): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(refusal(code)(error), `${code}, not ${String(error)}`);
}

test('notifies the new receiver of a reassigned gift', async ({ house }) => {
  user(house, 'cat', '+447700900007');
  house.process();
  const {
    giftIds: [giftId = '', shared = ''],
  } = await house.buy([phone(1), {}]);
  await told(house, 1);
  await reassignGift(desk(house), giftId, context(), { user_id: 'cat' }, 'wrong person');
  await told(house, 2);
  await reassignGift(desk(house), giftId, context(), { phone_number: '07700 900008' }, 'wrong again');
  await told(house, 3);
  await reassignGift(desk(house), shared, context(), { user_id: 'cat' }, 'lost the link');
  await told(house, 4);
  assert.equal(sent(house), ['001', '007', '008', '007']);
  assert.equal(await story(house, giftId), ['Started 1', 'Sent 1', 'Started 2', 'Sent 2', 'Started 3', 'Sent 3']);
  assert.equal(await story(house, shared), ['Started 1', 'Sent 1']);
  const moved = (await house.all('GiftReassigned'))[1];
  assert.equal(moved?.data, {
    ...moved?.data,
    receiver: { phone_id: (await house.subjects.ids([phoneSubject('+447700900008')]))[0] },
    reason: 'wrong again',
  });
  assert.equal(
    (await reassignGift(desk(house), giftId, context(), { phone_number: '+447700900008' }, 'again')).own,
    [],
  );
  await refused(reassignGift(desk(house), giftId, context(), { user_id: 'nobody' }, 'x'), 'receiver_not_found');
  await refused(reassignGift(desk(house), giftId, context(), { phone_number: '12' }, 'x'), 'invalid_phone_number');
  await sleep(30);
  assert.is(sent(house).length, 4);
});

test('notifies at first, too, only of a gift that can be used, and of a blocked one once it is free', async ({
  house,
}) => {
  let isDown = true;
  const bus = watched(house.bus, [], (subject) =>
    isDown && subject.startsWith('notifications') ? Promise.reject(new UnavailableError('down')) : undefined,
  );
  const first = house.process({ bus });
  const {
    giftIds: [redeemed = '', blocked = '', open = ''],
    transactionId: transaction_id,
  } = await house.buy([phone(1), phone(2), phone(3)]);
  await house.until(async () => (await house.all('NotificationStarted')).length === 3);
  await first.close();
  const cause = 'support';
  await house.append(`gift-${redeemed}`, 'GiftRedeemed', { redemption_id: 'r', location_id: 'l', merchant_id: null });
  await house.append(`gift-${blocked}`, 'GiftBlocked', { cause, reason: 'x' });
  isDown = false;
  house.process({ bus });
  await told(house, 3);
  assert.equal(sent(house), ['003']);
  for (const [giftId, why] of [
    [redeemed, 'gift is redeemed'],
    [blocked, 'gift is blocked'],
  ] as const)
    assert.equal(
      (await house.events.read(`notification-${giftId}`)).map(({ type, data }) => [
        type,
        'cause' in data && data.cause,
      ]),
      [
        ['NotificationStarted', false],
        ['NotificationFailed', why],
      ],
    );
  await house.append(`gift-${blocked}`, 'GiftUnblocked', { cause, transaction_id });
  await told(house, 4);
  assert.equal(await story(house, blocked), ['Started 1', 'Failed 1', 'Started 2', 'Sent 2']);
  assert.equal(await story(house, open), ['Started 1', 'Sent 1']);
  assert.equal(sent(house), ['003', '002']);
});

test('records a receiver without an address, and sends nothing for a cancelled gift', async ({ house }) => {
  house.contacts.set('mute', { name: 'Mute', phone_number: null, device_tokens: [], locale: null });
  const first = house.process();
  const {
    giftIds: [giftId = '', other = ''],
  } = await house.buy([phone(1), phone(2)]);
  await told(house, 2);
  await reassignGift(desk(house), giftId, context(), { user_id: 'mute' }, 'x');
  await told(house, 3);
  assert.equal((await house.all('NotificationFailed'))[0]?.data, {
    ...(await house.all('NotificationFailed'))[0]?.data,
    cause: 'no address',
    attempt: 2,
  });
  await first.close();
  await resendGift(desk(house), other, context(), 'x');
  await house.append(`gift-${other}`, 'GiftCancelled', { reason: 'refund' });
  house.process();
  await told(house, 4);
  assert.equal(
    (await house.all('NotificationFailed')).map(({ data }) => (data as { cause: string }).cause),
    ['no address', 'gift is cancelled'],
  );
  assert.is(sent(house).length, 2);
});

test('parks a resend with an unknown outcome; a retry looks it up, a discard ends it', async ({ house }) => {
  const seen: Record<string, unknown>[] = [];
  let lost = false;
  let known: object = { outcome: 'unknown' };
  const bus = watched(house.bus, seen, (subject) => {
    if (!lost) return undefined;
    return subject === 'notifications.send'
      ? Promise.reject(new UnavailableError('lost', { outcomeUnknown: true }))
      : Promise.resolve(known);
  });
  house.process({ bus, retryPolicy: { ...house.deps.retryPolicy, attempts: 2 } });
  const {
    giftIds: [giftId = '', other = ''],
  } = await house.buy([phone(1), phone(2)]);
  await told(house, 2);
  lost = true;
  for (const id of [giftId, other]) await resendGift(desk(house), id, context(), 'did not arrive');
  await house.until(async () => (await house.all('WorkParked')).length === 2);
  await refused(resendGift(desk(house), giftId, context(), 'x'), 'notification_pending');
  assert.is(seen.length, 4);
  known = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
  await retryParked(desk(house), giftId, context(), 'ask again');
  await told(house, 3);
  await discardParked(desk(house), other, context(), 'called them');
  assert.equal(await story(house, other), ['Started 1', 'Sent 1', 'Requested 2', 'Started 2', 'Failed 2']);
  assert.is(seen.length, 4);
  lost = false;
  await resendGift(desk(house), other, context(), 'called in vain');
  await told(house, 5);
  assert.equal((await story(house, other)).slice(-3), ['Requested 3', 'Started 3', 'Sent 3']);
});

test('parks a push with an unknown outcome rather than follow it by an SMS', async ({ house }) => {
  for (const id of ['cat', 'dan', 'eve'])
    house.contacts.set(id, { name: id, phone_number: '+447700900007', device_tokens: ['d1'], locale: null });
  const seen: Record<string, unknown>[] = [];
  const lost: string[] = [];
  const bus: Bus = {
    ...house.bus,
    request: async <R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> => {
      const { channel } = payload as { channel?: string };
      if (subject === 'notifications.lookup') return { outcome: 'never' } as R;
      if (subject !== 'notifications.send') return house.bus.request(subject, payload, options);
      seen.push(payload as Record<string, unknown>);
      if (channel === 'push' && lost.length < 3) {
        // The second one has certainly not reached anybody.
        lost.push((payload as { gift_id: string }).gift_id);
        const begun = (payload as { gift_id: string }).gift_id !== second;
        if (lost.length === 3)
          for (const id of ['cat', 'dan'])
            house.contacts.set(id, { name: id, phone_number: '+447700900007', device_tokens: [], locale: null });
        await house.until(async () => lost.length === 3);
        throw new UnavailableError('lost', { outcomeUnknown: begun });
      }
      return house.bus.request(subject, payload, options);
    },
  };
  const {
    giftIds: [first = '', second = '', third = ''],
  } = await house.buy([{ user_id: 'cat' }, { user_id: 'dan' }, { user_id: 'eve' }]);
  house.process({ bus });
  await told(house, 2);
  await house.until(async () => (await house.all('WorkParked')).length === 1);
  const [parked] = await house.all('WorkParked');
  assert.equal(parked?.data, {
    ...parked?.data,
    entity: first,
    step: 'notify',
    cause: 'nobody knows whether the receiver was notified',
  });
  const after = seen.slice(3).map(({ gift_id, channel }) => [gift_id, channel]);
  assert.equal(
    after.toSorted(([, one], [, other]) => (String(one) < String(other) ? -1 : 1)),
    [
      [third, 'push'],
      [second, 'sms'],
    ],
  );
  await discardParked(desk(house), first, context(), 'called them');
  assert.equal(await story(house, first), ['Started 1', 'Failed 1']);
});

test('refuses one of two resends asked for at once', async ({ house }) => {
  user(house, 'cat', '+447700900007');
  house.process();
  const { giftIds } = await house.buy([phone(1), phone(2), phone(3), phone(4)]);
  await told(house, 4);
  const asked = await Promise.allSettled(
    giftIds.flatMap((id) => [
      resendGift(desk(house), id, context(), 'a'),
      resendGift(desk(house), id, context(), 'b'),
      reassignGift(desk(house), id, context(), { user_id: 'cat' }, 'c'),
    ]),
  );
  const accepted = asked.filter(({ status }) => status === 'fulfilled').length;
  await house.until(async () => house.lines.length > 0 && (await house.all('NotificationSent')).length >= 8);
  await sleep(50);
  // Of two resends one is accepted; a reassignment beside it may supersede it or come after it.
  assert.ok(accepted >= 4 && accepted <= 8, `${accepted} accepted`);
  for (const id of giftIds) {
    const types = await house.types(`notification-${id}`);
    assert.is(types.filter((type) => type === 'NotificationRequested').length <= 1, true);
    assert.is(
      types.filter((type) => type === 'NotificationStarted').length,
      types.filter((type) => type === 'NotificationSent').length,
    );
  }
  assert.is(sent(house).length, (await house.all('NotificationSent')).length);
});

test('notifies a new receiver once where a resend is overtaken', async ({ house }) => {
  user(house, 'cat', '+447700900007');
  let asked: Promise<unknown> = Promise.resolve();
  // The new receiver is told once the request stands there: who is being told already is not asked for.
  house.process({
    events: { ...house.events, append: async (...args) => asked.then(() => house.events.append(...args)) },
  });
  const {
    giftIds: [giftId = ''],
  } = await house.buy([phone(1)]);
  await told(house, 1);
  const overtaken: ReassignDeps = {
    ...desk(house),
    events: {
      ...house.events,
      append: async (...args) => {
        await reassignGift(desk(house), giftId, context(), { user_id: 'cat' }, 'wrong person');
        return house.events.append(...args);
      },
    },
  };
  asked = resendGift(overtaken, giftId, context(), 'did not arrive');
  await asked;
  await house.until(async () => (await house.all('NotificationRequested')).length === 1);
  await told(house, 2);
  await sleep(50);
  assert.equal(sent(house), ['001', '007']);
  await resendGift(desk(house), giftId, context(), 'did not arrive');
  await told(house, 3);
  assert.equal(sent(house), ['001', '007', '007'], 'who is asked for now is told');
});

test('resends what is asked for just as the attempt before ends', async ({ house }) => {
  let giftId = '';
  let sentTimes = 0;
  const events: EventStore = {
    ...house.events,
    async append(stream, all, expected) {
      const appended = await house.events.append(stream, all, expected);
      if (all[0]?.type === 'NotificationSent' && ++sentTimes === 2) {
        await resendGift(desk(house), giftId, context(), 'deleted it');
        // The feed has told of it before this attempt, which does not know of it, ends.
        await sleep(50);
      }
      return appended;
    },
  };
  house.process({ events });
  giftId = (await house.buy([phone(1)])).giftIds[0] ?? '';
  await told(house, 1);
  await resendGift(desk(house), giftId, context(), 'did not arrive');
  await told(house, 3);
  assert.equal((await story(house, giftId)).slice(-3), ['Requested 3', 'Started 3', 'Sent 3']);
});

test('resends nothing while a refund decides on the gift', async ({ house }) => {
  const first = house.process();
  const {
    transactionId,
    giftIds: [giftId = ''],
  } = await house.buy([phone(1)]);
  await told(house, 1);
  await first.close();
  await resendGift(desk(house), giftId, context(), 'did not arrive');
  await house.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'r',
    gift_ids: [giftId],
    voided: false,
    reason: 'wrong product',
  });
  const events: EventStore = {
    ...house.events,
    append: async (stream, all, expected) => {
      if (all[0]?.type === 'GiftCancelled') await sleep(60);
      return house.events.append(stream, all, expected);
    },
  };
  // Nobody is looked after again by the clock alone.
  house.process({ events, retryPolicy: { ...house.deps.retryPolicy, retryAtMostMs: 60_000 } });
  await told(house, 2);
  assert.equal(await story(house, giftId), ['Started 1', 'Sent 1', 'Requested 2', 'Failed 2']);
  assert.is(sent(house).length, 1);
});

test('notifies each once over a faulty bus', async ({ house }) => {
  house.process({ bus: faultyBus(house.bus, 7) });
  const { giftIds } = await house.buy(Array.from({ length: 6 }, (_, n) => phone(n)));
  await told(house, 6);
  for (const id of giftIds) await resendGift(desk(house), id, context(), 'x');
  await told(house, 12);
  await sleep(50);
  assert.is(sent(house).length, 12);
  assert.equal(await house.all('WorkParked'), []);
});

test('notifies once when dying at any moment of a resend or reassignment', async ({ house }) => {
  user(house, 'cat', '+447700900007');
  for (const moment of ['before', 'after'] as const) {
    for (let at = 1, died = true; died; at++) {
      const first = house.process({ leaseMs: 60 });
      const before = (await house.all('NotificationSent')).length;
      const {
        giftIds: [giftId = '', other = ''],
      } = await house.buy([phone(1), phone(2)]);
      await told(house, before + 2);
      await first.close();
      const doomed = mortal(house.deps, at, moment);
      const second = house.process({ ...doomed.deps, leaseMs: 60 });
      await resendGift(desk(house), giftId, context(), 'x');
      await reassignGift(desk(house), other, context(), { user_id: 'cat' }, 'y');
      const finished = async (): Promise<boolean> => (await house.all('NotificationSent')).length === before + 4;
      await house.until(async () => doomed.dead || (await finished()));
      died = doomed.dead;
      const third = house.process({ leaseMs: 60 });
      await house.until(finished);
      await Promise.all([second.close(), third.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(await story(house, giftId), ['Started 1', 'Sent 1', 'Requested 2', 'Started 2', 'Sent 2'], where);
      assert.equal(await story(house, other), ['Started 1', 'Sent 1', 'Started 2', 'Sent 2'], where);
      assert.is(sent(house).length, before + 4, where);
      if (!died) assert.ok(at > 6, `both have ${at - 1} effects`);
    }
  }
});

test.run();
