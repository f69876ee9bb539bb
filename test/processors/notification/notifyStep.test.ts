import { randomUUID } from 'node:crypto';
import * as assert from 'uvu/assert';
import { giftStream } from '../../../src/domain/gift/events.js';
import { notificationStream } from '../../../src/domain/notification.js';
import { NO_TEXT } from '../../../src/lib/seal.js';
import { type Bus, DeadlineError, NoRespondersError } from '../../../src/ports/bus.js';
import type { Cause } from '../../../src/processors/runner/cause.js';
import { RETRY_POLICY } from '../../../src/processors/runner/retry.js';
import { NotOursError } from '../../../src/runtime/coordination/lease.js';
import { type AttemptMemory, notify, type NotifyDeps } from '../../../src/processors/notification/notifyStep.js';
import { openWriter } from '../../../src/processors/runner/writing.js';
import { SUBJECTS } from '../../support/providers/subjects.js';
import { eventOf, logSuite, type TestLog } from '../../support/service/testLog.js';

const test = logSuite('a notification that another process may have sent');

const GIFT = 'gift-1';
const ISSUE = randomUUID();
const REQUESTED = { attempt: 1, asked_by: ISSUE };
const STARTED = { transaction_id: 't', channel: 'sms', ...REQUESTED };
const SENT = { channel: 'sms', provider: 'p', message_id: 'm', simulated: true, ...REQUESTED };

interface Tried {
  /** What was asked for on the bus. */
  readonly requested: readonly (readonly [subject: string, message: Readonly<Record<string, unknown>>])[];
  /** Whether more may be left to do; `undefined`: it failed. */
  readonly more: boolean | undefined;
  readonly error: Error | undefined;
}

interface Given extends Partial<Omit<NotifyDeps, 'bus'>> {
  readonly memory?: AttemptMemory;
  /** What a look-up and a request to send bring. */
  readonly found?: object | Error;
  readonly answer?: object | Error;
  /** The event that asks for it; by default the issue. */
  readonly last?: Cause;
}

/** Tries as the feed asks for it that has seen nothing of the other process. */
async function attempt(log: TestLog, { memory = { unsent: undefined }, found, answer, last, ...more }: Given = {}) {
  const requested: [string, Readonly<Record<string, unknown>>][] = [];
  const deps: NotifyDeps = {
    events: log.events,
    bus: {
      request: async (subject: string, message: Readonly<Record<string, unknown>>) => {
        requested.push([subject, message]);
        const sent = { outcome: 'sent', provider: 'p', message_id: 'm', simulated: true };
        const reply = subject === SUBJECTS.send ? (answer ?? sent) : (found ?? sent);
        if (reply instanceof Error) throw reply;
        return reply;
      },
    } as unknown as Bus,
    writer: openWriter(log.events, Date.now),
    contact: async () => undefined,
    numberOf: async () => NUMBER,
    openText: async () => 'Enjoy',
    senderName: async (buyer) => `Ann (${buyer})`,
    purchase: async () => ({ buyer_id: 'buyer', product_name: 'Flat white', message: NO_TEXT }),
    launchUrl: (giftId) => `http://gift.test/g/${giftId}`,
    retryPolicy: RETRY_POLICY,
    now: Date.now,
    mayAct: () => undefined,
    ...more,
  };
  if ((await log.types(giftStream(GIFT))).length === 0) await issue(log);
  const ended = await notify(deps, GIFT, last ?? { id: ISSUE, at: '', revision: 0, correlationId: 'c' }, memory).then(
    (left) => ({ more: left, error: undefined }),
    (error: unknown) => ({ more: undefined, error: error as Error }),
  );
  return { requested, ...ended } satisfies Tried;
}

/**
 * As `attempt`. `never`: nobody has been told as far as the provider knows. @returns the subjects that were asked for on
 * the bus
 */
async function told(
  log: TestLog,
  memory: AttemptMemory = { unsent: undefined },
  { never, mayAct = () => undefined }: { never?: true; mayAct?: () => void } = {},
): Promise<string[]> {
  const { requested, error } = await attempt(log, { memory, mayAct, ...(never === true ? { found: NEVER } : {}) });
  if (error !== undefined && !(error instanceof NotOursError)) throw error;
  return subjects(requested);
}

const NUMBER = '+447700900001';
const NEVER = { outcome: 'never' };
const subjects = (requested: Tried['requested']): string[] => requested.map(([subject]) => subject);

async function issue(
  { events }: TestLog,
  expires_on = '2999-12-31',
  receiver: object = { phone_id: 'phone1' },
): Promise<void> {
  const data = { transaction_id: 't', index: 0, receiver, expires_on };
  await events.append(giftStream(GIFT), [{ ...eventOf('GiftIssued', data), id: ISSUE }], 'none');
}

test('notifies where no process has started', async ({ log }) => {
  assert.equal(await told(log), [SUBJECTS.send]);
  assert.equal(await log.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

for (const [end, data] of [
  ['NotificationSent', SENT],
  ['NotificationFailed', { cause: 'no address', ...REQUESTED }],
] as const) {
  test(`asks no worker once ${end} is recorded, at any try`, async ({ log }) => {
    const stream = notificationStream(GIFT);
    await log.append(stream, 'NotificationStarted', STARTED);
    await log.append(stream, end, data);
    for (const unsent of [undefined, 1]) assert.equal(await told(log, { unsent }), []);
    assert.equal(await log.types(stream), ['NotificationStarted', end]);
  });

  test(`sends once more where support requests it after ${end}, at any try`, async ({ log }) => {
    const stream = notificationStream(GIFT);
    await log.append(stream, 'NotificationStarted', STARTED);
    await log.append(stream, end, data);
    const requested = { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'lost' };
    await log.append(stream, 'NotificationRequested', requested);
    assert.equal(await told(log, { unsent: 1 }), [SUBJECTS.send]);
    for (const unsent of [undefined, 2]) assert.equal(await told(log, { unsent }), []);
    assert.equal((await log.types(stream)).slice(2), [
      'NotificationRequested',
      'NotificationStarted',
      'NotificationSent',
    ]);
  });
}

test('looks a started attempt up and sends nothing', async ({ log }) => {
  await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(log), [SUBJECTS.lookUpNotification]);
  assert.equal(await log.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
});

const YESTERDAY = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);

/** What happened to a gift before its first notification goes out. */
for (const [cause, expires_on, event, data] of [
  ['gift is cancelled', '2999-12-31', 'GiftCancelled', { reason: 'x' }],
  ['gift is redeemed', '2999-12-31', 'GiftRedeemed', { redemption_id: 'r', merchant_id: null }],
  ['gift is blocked', '2999-12-31', 'GiftBlocked', { cause: 'support', reason: 'x' }],
  ['gift is expired', YESTERDAY, 'GiftExpired', { expires_on: YESTERDAY }],
] as const) {
  const given = async (log: TestLog): Promise<void> => {
    await issue(log, expires_on);
    await log.append(giftStream(GIFT), event, data);
  };

  for (const channel of ['sms', 'push']) {
    test(`sends nothing where the ${cause}, after a start by ${channel} that never arrived`, async ({ log }) => {
      await given(log);
      await log.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel });
      const { requested } = await attempt(log, { found: NEVER });
      assert.equal(
        requested.map(([subject, { stopped }]) => [subject, stopped]),
        [[SUBJECTS.lookUpNotification, cause]],
      );
      assert.equal(
        (await log.all('NotificationFailed')).map((failed) => failed.data),
        [{ cause, ...REQUESTED }],
      );
    });
  }

  test(`records what was sent before the ${cause}`, async ({ log }) => {
    await given(log);
    await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
    assert.equal(await told(log), [SUBJECTS.lookUpNotification]);
    assert.equal(await log.types(notificationStream(GIFT)), ['NotificationStarted', 'NotificationSent']);
  });

  test(`asks no worker where the ${cause} before the start`, async ({ log }) => {
    await given(log);
    assert.equal(await told(log), []);
    assert.equal(
      (await log.events.read(notificationStream(GIFT))).map(({ type, data: of }) => [type, of]),
      [['NotificationFailed', { cause, ...REQUESTED }]],
    );
  });
}

test('looks up every attempt but the one known as unsent', async ({ log }) => {
  await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  assert.equal(await told(log, { unsent: 2 }), [SUBJECTS.lookUpNotification]);
});

test('sends nothing once another process has the work, and remembers it for the next try', async ({ log }) => {
  const memory: AttemptMemory = { unsent: undefined };
  const mayAct = (): void => {
    throw new NotOursError('passed on');
  };
  assert.equal(await told(log, memory, { mayAct }), []);
  assert.equal(await log.types(notificationStream(GIFT)), ['NotificationStarted']);
  assert.equal(await told(log, memory), [SUBJECTS.send]);
});

const types = (log: TestLog): Promise<string[]> => log.types(notificationStream(GIFT));
const recorded = async (log: TestLog): Promise<unknown[]> =>
  (await log.events.read(notificationStream(GIFT))).map(({ type, data }) => [type, data]);
const bea = (device_tokens: readonly string[], phone_number: string | null) => ({
  name: 'Bea',
  phone_number,
  device_tokens,
  locale: 'cy',
});

test('sends what the purchase says, and records the answer with its causes', async ({ log }) => {
  const { requested, more } = await attempt(log);
  assert.equal(requested, [
    [
      SUBJECTS.send,
      {
        gift_id: GIFT,
        transaction_id: 't',
        buyer_id: 'buyer',
        channel: 'sms',
        to: [NUMBER],
        sender_name: 'Ann (buyer)',
        product_name: 'Flat white',
        message: 'Enjoy',
        launch_url: `http://gift.test/g/${GIFT}`,
        locale: null,
      },
    ],
  ]);
  assert.is(more, false);
  assert.equal(await recorded(log), [
    ['NotificationStarted', { transaction_id: 't', channel: 'sms', ...REQUESTED }],
    ['NotificationSent', { channel: 'sms', provider: 'p', message_id: 'm', ...REQUESTED }],
  ]);
  const [started, sent] = await log.events.read(notificationStream(GIFT));
  assert.equal(
    [started, sent].map((event) => [
      event?.metadata.commandId,
      event?.metadata.causationId,
      event?.metadata.correlationId,
      event?.metadata.simulated,
    ]),
    [
      [`notify-${GIFT}`, ISSUE, 'c', undefined],
      [`notify-${GIFT}`, started?.id, 'c', true],
    ],
  );
});

test('tells a further attempt apart, at the provider and in the log', async ({ log }) => {
  const stream = notificationStream(GIFT);
  await log.append(stream, 'NotificationStarted', STARTED);
  await log.append(stream, 'NotificationSent', SENT);
  await log.append(stream, 'NotificationRequested', { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'r' });
  const asking = (await log.events.read(stream)).at(-1);
  const last = { id: asking?.id ?? '', at: '', revision: 2, correlationId: 'c' };
  const failed = await attempt(log, { last, answer: new NoRespondersError('s') });
  const { requested, more } = await attempt(log, { last, found: { outcome: 'never' } });
  assert.ok(failed.error instanceof NoRespondersError);
  assert.equal(
    [...failed.requested, ...requested].map(([subject, message]) => [
      subject,
      message['attempt'],
      message['launch_url'],
    ]),
    [SUBJECTS.send, SUBJECTS.lookUpNotification, SUBJECTS.send].map((subject) => [
      subject,
      2,
      `http://gift.test/g/${GIFT}?n=2`,
    ]),
  );
  assert.equal([more, (await log.events.read(stream)).at(-1)?.metadata.commandId], [false, `notify-${GIFT}-2`]);
});

test('leaves the rest to the next attempt where more was asked for since', async ({ log }) => {
  await issue(log);
  const stream = notificationStream(GIFT);
  await log.append(stream, 'NotificationRequested', { transaction_id: 't', attempt: 2, gift_revision: 0, reason: 'r' });
  const asking = (await log.events.read(stream)).at(-1);
  const last = { id: asking?.id ?? '', at: '', revision: 0, correlationId: 'c' };
  const tries = [await attempt(log, { last }), await attempt(log, { last }), await attempt(log, { last })];
  assert.equal(
    tries.map(({ requested, more }) => [subjects(requested), more]),
    [
      [[SUBJECTS.send], true],
      [[SUBJECTS.send], false],
      [[], false],
    ],
  );
});

test('starts nothing where another process has the attempt, and comes back to it', async ({ log }) => {
  await issue(log);
  const meanwhile = async (): Promise<string> => {
    await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
    return NUMBER;
  };
  const { requested, more } = await attempt(log, { numberOf: meanwhile });
  assert.equal([requested, more, await types(log)], [[], true, ['NotificationStarted']]);
});

test('comes back where another process records the answer first', async ({ log }) => {
  const { more } = await attempt(log, {
    openText: async () => {
      await log.append(notificationStream(GIFT), 'NotificationFailed', { cause: 'x', ...REQUESTED });
      return '';
    },
  });
  assert.equal([more, await types(log)], [true, ['NotificationStarted', 'NotificationFailed']]);
});

test('sends a reminder without the message, and records it as one', async ({ log }) => {
  await issue(log);
  const reminder = { transaction_id: 't', days: 7, expires_on: '2999-12-31', until: '2999-12-24T20:00:00.000Z' };
  await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  await log.append(notificationStream(GIFT), 'NotificationSent', SENT);
  await log.append(giftStream(GIFT), 'ReminderDue', reminder);
  const due = (await log.events.read(giftStream(GIFT))).at(-1);
  const openText = async (): Promise<string> => assert.unreachable('the message is read') as never;
  const { requested } = await attempt(log, {
    openText,
    last: { id: due?.id ?? '', at: '', revision: 1, correlationId: 'c' },
  });
  assert.equal(
    requested.map(([, { message, expires_on, until }]) => [message, expires_on, until]),
    [['', '2999-12-31', '2999-12-24T20:00:00.000Z']],
  );
  assert.is((await types(log)).at(-1), 'ReminderSent');
});

test('looks an attempt up by what was started, at the present address', async ({ log }) => {
  const started = '2026-05-01T00:00:00.000Z';
  await log.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel: 'push' }, started);
  const there = await attempt(log, { found: { outcome: 'unknown' } });
  const gone = await attempt(log, { found: { outcome: 'unknown' }, numberOf: async () => undefined });
  for (const [{ requested, error }, to, ends] of [
    [there, [NUMBER], {}],
    [gone, [], { stopped: 'no address' }],
  ] as const) {
    const launch_url = `http://gift.test/g/${GIFT}`;
    assert.equal(requested, [
      [SUBJECTS.lookUpNotification, { gift_id: GIFT, started_at: started, channel: 'push', to, launch_url, ...ends }],
    ]);
    assert.equal([error?.name, error?.message], ['Error', 'nobody knows whether the receiver was notified']);
  }
  assert.equal(await types(log), ['NotificationStarted']);
});

test('records why a message was not sent, by the provider or for want of an address', async ({ log }) => {
  await attempt(log, { answer: { outcome: 'failed', cause: 'number is dead', simulated: true } });
  const [, failed] = await log.events.read(notificationStream(GIFT));
  assert.equal([failed?.data, failed?.metadata.simulated], [{ cause: 'number is dead', ...REQUESTED }, true]);
});

test('records why a message was not sent as it is found later', async ({ log }) => {
  await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  const { requested } = await attempt(log, { found: { outcome: 'failed', cause: 'number is dead', simulated: false } });
  assert.equal(subjects(requested), [SUBJECTS.lookUpNotification]);
  assert.equal((await recorded(log)).at(-1), ['NotificationFailed', { cause: 'number is dead', ...REQUESTED }]);
});

for (const [when, started] of [
  ['before the start', undefined],
  ['after a text that never arrived', 'sms'],
  ['after a push that never arrived', 'push'],
] as const)
  test(`fails where the receiver has no address ${when}`, async ({ log }) => {
    const channel = started;
    if (started !== undefined)
      await log.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel });
    const { requested, more } = await attempt(log, { numberOf: async () => undefined, found: NEVER });
    assert.equal([subjects(requested), more], [started === undefined ? [] : [SUBJECTS.lookUpNotification], false]);
    const failed = (await log.events.read(notificationStream(GIFT))).at(-1);
    assert.equal(
      [failed?.type, failed?.data, failed?.metadata.simulated],
      ['NotificationFailed', { cause: 'no address', ...REQUESTED }, undefined],
    );
  });

test('knows by the failure whether a message was handed over', async ({ log }) => {
  const memory: AttemptMemory = { unsent: undefined };
  const tries: unknown[] = [];
  for (const answer of [new NoRespondersError('s'), new DeadlineError('s', 1), undefined]) {
    const { requested } = await attempt(log, { memory, found: NEVER, ...(answer === undefined ? {} : { answer }) });
    tries.push([subjects(requested), memory.unsent]);
  }
  assert.equal(tries, [
    [[SUBJECTS.send], 1],
    [[SUBJECTS.send], undefined],
    [[SUBJECTS.lookUpNotification, SUBJECTS.send], undefined],
  ]);
});

/** Ann had the number when the gift was sent to it; `later` is what happened to the number since. */
async function issueToNumber(log: TestLog, ...later: readonly (readonly [type: string, user_id: string])[]) {
  await log.append('phone-phone1', 'PhoneTaken', { user_id: 'ann' }, '2026-01-01T00:00:00.000Z');
  const gift = { transaction_id: 't', index: 0, receiver: { phone_id: 'phone1' }, expires_on: '2999-12-31' };
  const issued = eventOf('GiftIssued', { ...gift, purchased_at: '2026-01-02T00:00:00.000Z' });
  await log.events.append(giftStream(GIFT), [{ ...issued, id: ISSUE }], 'none');
  for (const [type, user_id] of later) await log.append('phone-phone1', type, { user_id }, '2026-01-03T00:00:00.000Z');
}

const MOVED = ['PhoneGivenUp', 'ann'] as const;
const TAKEN = ['PhoneTaken', 'bob'] as const;
const annHas = (number: string | null, ...devices: readonly string[]): Given => ({
  contact: async (id) =>
    id === 'ann' ? { name: 'Ann', phone_number: number, device_tokens: devices, locale: 'cy' } : undefined,
});

for (const [where, later, found, to] of [
  ['at the number while it is theirs', [], annHas('+447700900077'), ['sms', [NUMBER]]],
  ['elsewhere once another user has it', [MOVED, TAKEN], annHas('+447700900077'), ['sms', ['+447700900077']]],
  ['elsewhere once they gave it up', [MOVED], annHas(null, 'd1'), ['push', ['d1']]],
  ['at the number that they gave up, without another address', [MOVED], annHas(null), ['sms', [NUMBER]]],
] as const)
  test(`notifies the owner of a gift to a number ${where}`, async ({ log }) => {
    await issueToNumber(log, ...later);
    const { requested } = await attempt(log, found);
    assert.equal(
      requested.map(([subject, { channel, to: addresses }]) => [subject, channel, addresses]),
      [[SUBJECTS.send, ...to]],
    );
  });

test('tells no later holder of a number of a gift whose owner can not be reached', async ({ log }) => {
  await issueToNumber(log, MOVED, TAKEN);
  assert.equal((await attempt(log, annHas(null))).requested, []);
  const failed = (await log.events.read(notificationStream(GIFT))).at(-1);
  assert.equal([failed?.type, failed?.data], ['NotificationFailed', { cause: 'no address', ...REQUESTED }]);
});

test('sends a push again only as a push, unless it was certainly not sent', async ({ log }) => {
  await issue(log, undefined, { user_id: 'bea' });
  await log.append(notificationStream(GIFT), 'NotificationStarted', { ...STARTED, channel: 'push' });
  const sms = async () => bea([], NUMBER);
  const numberOf = async (): Promise<string> => assert.unreachable('a user has no number of a purchase') as never;
  const other = await attempt(log, { found: NEVER, contact: sms, numberOf });
  assert.equal(
    [other.error?.name, other.error?.message, subjects(other.requested)],
    ['GiveUpError', 'nobody knows whether the receiver was notified', [SUBJECTS.lookUpNotification]],
  );
  const failing = { answer: new DeadlineError('s', 1) };
  const push = await attempt(log, { found: NEVER, contact: async () => bea(['d1', 'd2'], NUMBER), ...failing });
  const unsent = await attempt(log, { memory: { unsent: 1 }, contact: sms, ...failing });
  assert.equal(
    [push, unsent]
      .map(({ requested }) => requested.at(-1))
      .map((last) => [last?.[0], last?.[1]['channel'], last?.[1]['to'], last?.[1]['locale']]),
    [
      [SUBJECTS.send, 'push', ['d1', 'd2'], 'cy'],
      [SUBJECTS.send, 'sms', [NUMBER], 'cy'],
    ],
  );
});

test('sends a text that never arrived by whatever reaches the receiver now', async ({ log }) => {
  await issue(log, undefined, { user_id: 'bea' });
  await log.append(notificationStream(GIFT), 'NotificationStarted', STARTED);
  const { requested, more } = await attempt(log, { found: NEVER, contact: async () => bea(['d1'], NUMBER) });
  assert.equal(
    [subjects(requested), requested.at(-1)?.[1]['channel'], more],
    [[SUBJECTS.lookUpNotification, SUBJECTS.send], 'push', false],
  );
});

test.run();
