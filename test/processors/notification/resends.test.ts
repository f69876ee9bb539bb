import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import * as assert from 'uvu/assert';
import type { CommandContext } from '../../../src/commands/transact.js';
import type { ParkedDeps } from '../../../src/commands/findParked.js';
import { discardParked, retryParked } from '../../../src/commands/parkedWork.js';
import { type ReassignDeps, reassignGift } from '../../../src/commands/reassignGift.js';
import { resendGift } from '../../../src/commands/resendGift.js';
import { phoneSubject } from '../../../src/domain/personalFields.js';
import type { Bus } from '../../../src/ports/bus.js';
import type { EventStore } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { faultyBus } from '../../support/faults/faultyBus.js';
import { type TestInstallation, phone } from '../../support/service/installation.js';
import { installationSuite } from '../../support/service/installationSuite.js';
import { crashable } from '../../support/faults/crashable.js';
import { refusal } from '../../support/assertions/rejects.js';

const test = installationSuite('resends');
test.before.each(async ({ installation }) => {
  await installation.work();
});

const context = (): CommandContext => ({
  commandId: randomUUID(),
  correlationId: 'c',
  by: { user: 'sue' },
  now: new Date().toISOString(),
});

/** As support works; the house's contacts are its users. */
const desk = (installation: TestInstallation): ReassignDeps & ParkedDeps =>
  ({
    events: installation.events,
    gifts: { get: async () => undefined, reached: async () => true },
    accounts: {
      get: async (id: string) =>
        installation.contacts.has(id.slice('user-'.length)) ? { entry: 'user', active: true, roles: [] } : undefined,
      reached: async () => true,
    },
    parked: { getMany: async (ids: readonly string[]) => ids.map(() => undefined) },
    subjects: installation.subjects,
  }) as unknown as ReassignDeps & ParkedDeps;

const user = (installation: TestInstallation, id: string, phone_number: string): void =>
  void installation.contacts.set(id, { name: id, phone_number, device_tokens: [], locale: null });
const sent = (installation: TestInstallation): unknown[] =>
  installation.lines
    .filter(({ msg }) => msg === 'simulated notification sent')
    .map(({ to }) => (to as string[])[0]?.slice(-3));
const told = async (installation: TestInstallation, count: number): Promise<void> =>
  installation.until(async () => (await installation.all('NotificationSent', 'NotificationFailed')).length === count);
const story = async (installation: TestInstallation, giftId: string): Promise<string[]> =>
  (await installation.events.read(`notification-${giftId}`)).map(
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

test('resends once for each request, with its number', async ({ installation }) => {
  const seen: Record<string, unknown>[] = [];
  installation.process({ bus: watched(installation.bus, seen) });
  const {
    giftIds: [giftId = ''],
  } = await installation.buy([phone(1)]);
  await told(installation, 1);
  const requested = context();
  const first = await resendGift(desk(installation), giftId, requested, 'did not arrive');
  assert.equal((await resendGift(desk(installation), giftId, requested, 'did not arrive')).replayed, true);
  await told(installation, 2);
  await resendGift(desk(installation), giftId, context(), 'deleted it');
  await told(installation, 3);
  assert.equal(await story(installation, giftId), [
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
  assert.is(sent(installation).length, 3);
  const started = (await installation.all('NotificationStarted'))[1];
  assert.equal(started?.data, { ...started?.data, attempt: 2, asked_by: first.own[0]?.id });
  assert.is(started?.metadata.causationId, first.own[0]?.id);
});

test('refuses a resend while a notification is under way', async ({ installation }) => {
  const phone_number = '+447700900001';
  const [phone_id = ''] = await installation.subjects.ids([phoneSubject(phone_number)]);
  const {
    giftIds: [giftId = '', shared = ''],
  } = await installation.buy([{ phone_id }, {}]);
  await refused(resendGift(desk(installation), giftId, context(), 'x'), 'gift_not_found');
  const processors = installation.process({
    bus: watched(installation.bus, [], (subject) =>
      subject.startsWith('notifications') ? Promise.reject(new UnavailableError('down')) : undefined,
    ),
  });
  await installation.until(
    async () =>
      (await installation.types(`notification-${giftId}`)).length === 1 &&
      (await installation.types(`gift-${shared}`)).length === 1,
  );
  await refused(resendGift(desk(installation), giftId, context(), 'x'), 'notification_pending');
  await refused(
    reassignGift(desk(installation), giftId, context(), { phone_number: '+447700900002' }, 'x'),
    'notification_pending',
  );
  assert.equal(
    (await reassignGift(desk(installation), giftId, context(), { phone_number }, 'x')).own,
    [],
    'theirs already: nothing changes for whoever is being told',
  );
  await refused(resendGift(desk(installation), shared, context(), 'x'), 'gift_has_no_receiver');
  await processors.close();
  installation.process();
  await told(installation, 1);
  await installation.append(`gift-${giftId}`, 'GiftBlocked', { cause: 'support', reason: 'x' });
  await refused(resendGift(desk(installation), giftId, context(), 'x'), 'gift_blocked');
});

async function refused(promise: Promise<unknown>, code: string): Promise<void> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(refusal(code)(error), `${code}, not ${String(error)}`);
}

test('notifies the new receiver of a reassigned gift', async ({ installation }) => {
  user(installation, 'cat', '+447700900007');
  installation.process();
  const {
    giftIds: [giftId = '', shared = ''],
  } = await installation.buy([phone(1), {}]);
  await told(installation, 1);
  await reassignGift(desk(installation), giftId, context(), { user_id: 'cat' }, 'wrong person');
  await told(installation, 2);
  await reassignGift(desk(installation), giftId, context(), { phone_number: '07700 900008' }, 'wrong again');
  await told(installation, 3);
  await reassignGift(desk(installation), shared, context(), { user_id: 'cat' }, 'lost the link');
  await told(installation, 4);
  assert.equal(sent(installation), ['001', '007', '008', '007']);
  assert.equal(await story(installation, giftId), [
    'Started 1',
    'Sent 1',
    'Started 2',
    'Sent 2',
    'Started 3',
    'Sent 3',
  ]);
  assert.equal(await story(installation, shared), ['Started 1', 'Sent 1']);
  const moved = (await installation.all('GiftReassigned'))[1];
  assert.equal(moved?.data, {
    ...moved?.data,
    receiver: { phone_id: (await installation.subjects.ids([phoneSubject('+447700900008')]))[0] },
    reason: 'wrong again',
  });
  assert.equal(
    (await reassignGift(desk(installation), giftId, context(), { phone_number: '+447700900008' }, 'again')).own,
    [],
  );
  await refused(reassignGift(desk(installation), giftId, context(), { user_id: 'nobody' }, 'x'), 'receiver_not_found');
  await refused(
    reassignGift(desk(installation), giftId, context(), { phone_number: '12' }, 'x'),
    'invalid_phone_number',
  );
  await sleep(30);
  assert.is(sent(installation).length, 4);
});

test('notifies at first, too, only of a gift that can be used, and of a blocked one once it is free', async ({
  installation,
}) => {
  let isDown = true;
  const bus = watched(installation.bus, [], (subject) =>
    isDown && subject.startsWith('notifications') ? Promise.reject(new UnavailableError('down')) : undefined,
  );
  const first = installation.process({ bus });
  const {
    giftIds: [redeemed = '', blocked = '', open = ''],
    transactionId: transaction_id,
  } = await installation.buy([phone(1), phone(2), phone(3)]);
  await installation.until(async () => (await installation.all('NotificationStarted')).length === 3);
  await first.close();
  const cause = 'support';
  await installation.append(`gift-${redeemed}`, 'GiftRedeemed', {
    redemption_id: 'r',
    location_id: 'l',
    merchant_id: null,
  });
  await installation.append(`gift-${blocked}`, 'GiftBlocked', { cause, reason: 'x' });
  isDown = false;
  installation.process({ bus });
  await told(installation, 3);
  assert.equal(sent(installation), ['003']);
  for (const [giftId, why] of [
    [redeemed, 'gift is redeemed'],
    [blocked, 'gift is blocked'],
  ] as const)
    assert.equal(
      (await installation.events.read(`notification-${giftId}`)).map(({ type, data }) => [
        type,
        'cause' in data && data.cause,
      ]),
      [
        ['NotificationStarted', false],
        ['NotificationFailed', why],
      ],
    );
  await installation.append(`gift-${blocked}`, 'GiftUnblocked', { cause, transaction_id });
  await told(installation, 4);
  assert.equal(await story(installation, blocked), ['Started 1', 'Failed 1', 'Started 2', 'Sent 2']);
  assert.equal(await story(installation, open), ['Started 1', 'Sent 1']);
  assert.equal(sent(installation), ['003', '002']);
});

test('records a receiver without an address, and sends nothing for a cancelled gift', async ({ installation }) => {
  installation.contacts.set('mute', { name: 'Mute', phone_number: null, device_tokens: [], locale: null });
  const first = installation.process();
  const {
    giftIds: [giftId = '', other = ''],
  } = await installation.buy([phone(1), phone(2)]);
  await told(installation, 2);
  await reassignGift(desk(installation), giftId, context(), { user_id: 'mute' }, 'x');
  await told(installation, 3);
  assert.equal((await installation.all('NotificationFailed'))[0]?.data, {
    ...(await installation.all('NotificationFailed'))[0]?.data,
    cause: 'no address',
    attempt: 2,
  });
  await first.close();
  await resendGift(desk(installation), other, context(), 'x');
  await installation.append(`gift-${other}`, 'GiftCancelled', { reason: 'refund' });
  installation.process();
  await told(installation, 4);
  assert.equal(
    (await installation.all('NotificationFailed')).map(({ data }) => (data as { cause: string }).cause),
    ['no address', 'gift is cancelled'],
  );
  assert.is(sent(installation).length, 2);
});

test('parks a resend with an unknown outcome; a retry looks it up, a discard ends it', async ({ installation }) => {
  const seen: Record<string, unknown>[] = [];
  let lost = false;
  let known: object = { outcome: 'unknown' };
  const bus = watched(installation.bus, seen, (subject) => {
    if (!lost) return undefined;
    return subject === 'notifications.send'
      ? Promise.reject(new UnavailableError('lost', { outcomeUnknown: true }))
      : Promise.resolve(known);
  });
  installation.process({ bus, retryPolicy: { ...installation.deps.retryPolicy, attempts: 2 } });
  const {
    giftIds: [giftId = '', other = ''],
  } = await installation.buy([phone(1), phone(2)]);
  await told(installation, 2);
  lost = true;
  for (const id of [giftId, other]) await resendGift(desk(installation), id, context(), 'did not arrive');
  await installation.until(async () => (await installation.all('WorkParked')).length === 2);
  await refused(resendGift(desk(installation), giftId, context(), 'x'), 'notification_pending');
  assert.is(seen.length, 4);
  known = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: false };
  await retryParked(desk(installation), giftId, context(), 'ask again');
  await told(installation, 3);
  await discardParked(desk(installation), other, context(), 'called them');
  assert.equal(await story(installation, other), ['Started 1', 'Sent 1', 'Requested 2', 'Started 2', 'Failed 2']);
  assert.is(seen.length, 4);
  lost = false;
  await resendGift(desk(installation), other, context(), 'called in vain');
  await told(installation, 5);
  assert.equal((await story(installation, other)).slice(-3), ['Requested 3', 'Started 3', 'Sent 3']);
});

test('parks a push with an unknown outcome rather than follow it by an SMS', async ({ installation }) => {
  for (const id of ['cat', 'dan', 'eve'])
    installation.contacts.set(id, { name: id, phone_number: '+447700900007', device_tokens: ['d1'], locale: null });
  const seen: Record<string, unknown>[] = [];
  const lost: string[] = [];
  const bus: Bus = {
    ...installation.bus,
    request: async <R>(subject: string, payload: object, options: { timeoutMs: number }): Promise<R> => {
      const { channel } = payload as { channel?: string };
      if (subject === 'notifications.lookup') return { outcome: 'never' } as R;
      if (subject !== 'notifications.send') return installation.bus.request(subject, payload, options);
      seen.push(payload as Record<string, unknown>);
      if (channel === 'push' && lost.length < 3) {
        // The second one has certainly not reached anybody.
        lost.push((payload as { gift_id: string }).gift_id);
        const begun = (payload as { gift_id: string }).gift_id !== second;
        if (lost.length === 3)
          for (const id of ['cat', 'dan'])
            installation.contacts.set(id, { name: id, phone_number: '+447700900007', device_tokens: [], locale: null });
        await installation.until(async () => lost.length === 3);
        throw new UnavailableError('lost', { outcomeUnknown: begun });
      }
      return installation.bus.request(subject, payload, options);
    },
  };
  const {
    giftIds: [first = '', second = '', third = ''],
  } = await installation.buy([{ user_id: 'cat' }, { user_id: 'dan' }, { user_id: 'eve' }]);
  installation.process({ bus });
  await told(installation, 2);
  await installation.until(async () => (await installation.all('WorkParked')).length === 1);
  const [parked] = await installation.all('WorkParked');
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
  await discardParked(desk(installation), first, context(), 'called them');
  assert.equal(await story(installation, first), ['Started 1', 'Failed 1']);
});

test('refuses one of two resends asked for at once', async ({ installation }) => {
  user(installation, 'cat', '+447700900007');
  installation.process();
  const { giftIds } = await installation.buy([phone(1), phone(2), phone(3), phone(4)]);
  await told(installation, 4);
  const requested = await Promise.allSettled(
    giftIds.flatMap((id) => [
      resendGift(desk(installation), id, context(), 'a'),
      resendGift(desk(installation), id, context(), 'b'),
      reassignGift(desk(installation), id, context(), { user_id: 'cat' }, 'c'),
    ]),
  );
  const accepted = requested.filter(({ status }) => status === 'fulfilled').length;
  await installation.until(
    async () => installation.lines.length > 0 && (await installation.all('NotificationSent')).length >= 8,
  );
  await sleep(50);
  // Of two resends one is accepted; a reassignment beside it may supersede it or come after it.
  assert.ok(accepted >= 4 && accepted <= 8, `${accepted} accepted`);
  for (const id of giftIds) {
    const types = await installation.types(`notification-${id}`);
    assert.is(types.filter((type) => type === 'NotificationRequested').length <= 1, true);
    assert.is(
      types.filter((type) => type === 'NotificationStarted').length,
      types.filter((type) => type === 'NotificationSent').length,
    );
  }
  assert.is(sent(installation).length, (await installation.all('NotificationSent')).length);
});

test('notifies a new receiver once where a resend is overtaken', async ({ installation }) => {
  user(installation, 'cat', '+447700900007');
  let requested: Promise<unknown> = Promise.resolve();
  // The new receiver is told once the request stands there: who is being told already is not asked for.
  installation.process({
    events: {
      ...installation.events,
      append: async (...args) => requested.then(() => installation.events.append(...args)),
    },
  });
  const {
    giftIds: [giftId = ''],
  } = await installation.buy([phone(1)]);
  await told(installation, 1);
  const overtaken: ReassignDeps = {
    ...desk(installation),
    events: {
      ...installation.events,
      append: async (...args) => {
        await reassignGift(desk(installation), giftId, context(), { user_id: 'cat' }, 'wrong person');
        return installation.events.append(...args);
      },
    },
  };
  requested = resendGift(overtaken, giftId, context(), 'did not arrive');
  await requested;
  await installation.until(async () => (await installation.all('NotificationRequested')).length === 1);
  await told(installation, 2);
  await sleep(50);
  assert.equal(sent(installation), ['001', '007']);
  await resendGift(desk(installation), giftId, context(), 'did not arrive');
  await told(installation, 3);
  assert.equal(sent(installation), ['001', '007', '007'], 'who is asked for now is told');
});

test('resends what is asked for just as the attempt before ends', async ({ installation }) => {
  let giftId = '';
  let sentTimes = 0;
  const events: EventStore = {
    ...installation.events,
    async append(stream, all, expected) {
      const appended = await installation.events.append(stream, all, expected);
      if (all[0]?.type === 'NotificationSent' && ++sentTimes === 2) {
        await resendGift(desk(installation), giftId, context(), 'deleted it');
        // The feed has told of it before this attempt, which does not know of it, ends.
        await sleep(50);
      }
      return appended;
    },
  };
  installation.process({ events });
  giftId = (await installation.buy([phone(1)])).giftIds[0] ?? '';
  await told(installation, 1);
  await resendGift(desk(installation), giftId, context(), 'did not arrive');
  await told(installation, 3);
  assert.equal((await story(installation, giftId)).slice(-3), ['Requested 3', 'Started 3', 'Sent 3']);
});

test('resends nothing while a refund decides on the gift', async ({ installation }) => {
  const first = installation.process();
  const {
    transactionId,
    giftIds: [giftId = ''],
  } = await installation.buy([phone(1)]);
  await told(installation, 1);
  await first.close();
  await resendGift(desk(installation), giftId, context(), 'did not arrive');
  await installation.append(`transaction-${transactionId}`, 'RefundRequested', {
    refund_id: 'r',
    gift_ids: [giftId],
    voided: false,
    reason: 'wrong product',
  });
  const events: EventStore = {
    ...installation.events,
    append: async (stream, all, expected) => {
      if (all[0]?.type === 'GiftCancelled') await sleep(60);
      return installation.events.append(stream, all, expected);
    },
  };
  // Nobody is looked after again by the clock alone.
  installation.process({ events, retryPolicy: { ...installation.deps.retryPolicy, retryAtMostMs: 60_000 } });
  await told(installation, 2);
  assert.equal(await story(installation, giftId), ['Started 1', 'Sent 1', 'Requested 2', 'Failed 2']);
  assert.is(sent(installation).length, 1);
});

test('notifies each once over a faulty bus', async ({ installation }) => {
  installation.process({ bus: faultyBus(installation.bus, 7) });
  const { giftIds } = await installation.buy(Array.from({ length: 6 }, (_, n) => phone(n)));
  await told(installation, 6);
  for (const id of giftIds) await resendGift(desk(installation), id, context(), 'x');
  await told(installation, 12);
  await sleep(50);
  assert.is(sent(installation).length, 12);
  assert.equal(await installation.all('WorkParked'), []);
});

test('notifies once when dying at any moment of a resend or reassignment', async ({ installation }) => {
  user(installation, 'cat', '+447700900007');
  for (const moment of ['before', 'after'] as const) {
    for (let at = 1, died = true; died; at++) {
      const first = installation.process({ leaseMs: 60 });
      const before = (await installation.all('NotificationSent')).length;
      const {
        giftIds: [giftId = '', other = ''],
      } = await installation.buy([phone(1), phone(2)]);
      await told(installation, before + 2);
      await first.close();
      const doomed = crashable(installation.deps, at, moment);
      const second = installation.process({ ...doomed.deps, leaseMs: 60 });
      await resendGift(desk(installation), giftId, context(), 'x');
      await reassignGift(desk(installation), other, context(), { user_id: 'cat' }, 'y');
      const finished = async (): Promise<boolean> => (await installation.all('NotificationSent')).length === before + 4;
      await installation.until(async () => doomed.dead || (await finished()));
      died = doomed.dead;
      const third = installation.process({ leaseMs: 60 });
      await installation.until(finished);
      await Promise.all([second.close(), third.close()]);
      const where = `died ${moment} effect ${at}`;
      assert.equal(
        await story(installation, giftId),
        ['Started 1', 'Sent 1', 'Requested 2', 'Started 2', 'Sent 2'],
        where,
      );
      assert.equal(await story(installation, other), ['Started 1', 'Sent 1', 'Started 2', 'Sent 2'], where);
      assert.is(sent(installation).length, before + 4, where);
      if (!died) assert.ok(at > 6, `both have ${at - 1} effects`);
    }
  }
});

test.run();
