import dns from 'node:dns';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { keyedHash } from '../../../src/domain/keyedHash.js';
import type { Records } from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { SendLookup, SendRequest } from '../../../src/messages/notifications.js';
import { openLedger } from '../../../src/providers/notifications/ledger.js';
import type { NotificationProvider } from '../../../src/providers/notifications/provider.js';
import { type SmsLimitOptions, smsLimits } from '../../../src/providers/notifications/smsLimits.js';
import { type TwilioDeps, twilioSms, type TwilioSettings } from '../../../src/providers/notifications/twilio.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../../src/providers/providerErrors.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { rejects } from '../../support/assertions/rejects.js';
import type { Requested, Fault } from '../../support/providers/standIn.js';
import { openTwilioServer, type TwilioServer } from '../../support/providers/twilioServer.js';
import { until } from '../../support/assertions/until.js';

interface Context {
  server: TwilioServer;
  records: Records;
  sms: NotificationProvider;
}
const test = suite<Context>('sms by twilio');

let now = Date.now();
let lines: string[] = [];
const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });
const hash = keyedHash(Buffer.alloc(32, 7));
const SETTLE_MS = 2_000;

async function open(
  server: TwilioServer,
  records: Records,
  more: Partial<TwilioSettings> = {},
  deps: Partial<TwilioDeps> = {},
  limits: SmsLimitOptions = {},
): Promise<NotificationProvider> {
  const settings = {
    accountSid: server.accountSid,
    authToken: server.authToken,
    from: '+447700900000',
    apiUrl: server.url,
    ...more,
  };
  const time = (): number => now;
  return twilioSms(settings, {
    logger,
    ledger: await openLedger(records, time, logger),
    limits: smsLimits(records, hash, time, limits),
    now: time,
    timeoutMs: 5_000,
    settleMs: SETTLE_MS,
    circuitBreaker: { failures: 50 },
    ...deps,
  });
}

test.before.each(async (context) => {
  now = Date.now();
  lines = [];
  context.server = await openTwilioServer();
  context.records = memoryRecords(() => now);
  context.sms = await open(context.server, context.records);
  // The ledger has been kept for a while.
  now += 1_000;
});
test.after.each((context) => context.server.close());

/** Waits for no answer for long. */
const impatient = (server: TwilioServer, records: Records): Promise<NotificationProvider> =>
  open(server, records, {}, { timeoutMs: 150 });

let serial = 0;
const ask = (to = '+447700900123', more: Partial<SendRequest> = {}): SendRequest => {
  const id = `gift${++serial}`;
  return {
    gift_id: id,
    transaction_id: `t-${id}`,
    buyer_id: 'ann',
    channel: 'sms',
    to: [to],
    sender_name: 'Ann',
    product_name: 'Flat white',
    message: 'Enjoy',
    launch_url: `https://gift.test/g/${id}x`,
    locale: null,
    ...more,
  };
};
const about = ({ gift_id, to, launch_url }: SendRequest, startedAt = now - 10): SendLookup => ({
  gift_id,
  to,
  launch_url,
  channel: 'sms',
  started_at: new Date(startedAt).toISOString(),
});
const isSend = ({ method }: Requested): boolean => method === 'POST';
function once(server: TwilioServer, fault: Fault, which: (requested: Requested) => boolean = isSend): void {
  server.fault = (requested) => {
    if (!which(requested)) return undefined;
    server.fault = () => undefined;
    return fault;
  };
}

test('sends the whole text once, however often it is asked', async ({ server, records, sms }) => {
  const request = ask();
  const reply = await sms.send(request);
  assert.equal(reply, { outcome: 'sent', provider: 'twilio', message_id: server.messages[0]?.sid, simulated: false });
  const form = Object.fromEntries(new URLSearchParams(server.requested[0]?.body));
  assert.equal(form, {
    To: '+447700900123',
    From: '+447700900000',
    Body: `Ann has sent you a gift: Flat white.\nEnjoy\n${request.launch_url}`,
  });
  assert.equal(await sms.send(request), reply);
  assert.equal(await (await open(server, records)).send(request), reply);
  assert.equal(await sms.lookUp(about(request)), reply);
  assert.is(server.sent(request.launch_url), 1);
});

test('by a messaging service', async ({ server, records }) => {
  const sms = await open(server, records, { messagingServiceSid: 'MG1' });
  await sms.send(ask());
  assert.is(new URLSearchParams(server.requested[0]?.body).get('MessagingServiceSid'), 'MG1');
  assert.is(new URLSearchParams(server.requested[0]?.body).get('From'), null);
});

test('of many repeats at once one is sent', async ({ server, sms }) => {
  const request = ask();
  server.fault = () => ({ kind: 'slow', ms: 30 });
  const replies = await Promise.allSettled(Array.from({ length: 8 }, () => sms.send(request)));
  assert.is(server.sent(request.launch_url), 1);
  assert.is(replies.filter(({ status }) => status === 'fulfilled').length, 1);
  for (const reply of replies)
    if (reply.status === 'rejected') assert.ok((reply.reason as ProviderError).outcomeUnknown);
});

test("fails a number that can't be reached with its cause, without the number", async ({ server, sms }) => {
  const causes: [number: string, cause: string][] = [
    ['+15005550001', 'invalid number (Twilio 21211)'],
    ['+15005550002', 'number cannot be reached (Twilio 21612)'],
    ['+15005550003', 'no messages to this region (Twilio 21408)'],
    ['+15005550004', 'receiver has unsubscribed (Twilio 21610)'],
    ['+15005550009', 'not a mobile number (Twilio 21614)'],
    ['nonsense', 'invalid number (Twilio 21211)'],
  ];
  for (const [number, cause] of causes) {
    const request = ask(number);
    assert.equal(await sms.send(request), { outcome: 'failed', cause, simulated: false });
    assert.equal(await sms.lookUp(about(request)), { outcome: 'failed', cause, simulated: false });
  }
  assert.is(server.messages.length, 0);
});

test('refuses or retries faults of ours, and keeps no claim', async ({ server, records, sms }) => {
  const request = ask('+15005550007');
  await rejects(sms.send(request), RefusedError, /^Twilio refuses the request \(HTTP 400, code 21606\)$/);
  assert.equal(await sms.lookUp(about(request)), { outcome: 'never' });
  const other = await open(server, records, { authToken: 'hunter2' }, { circuitBreaker: { failures: 1 } });
  const error = await rejects(other.send(ask()), ProviderError, /refuses our credentials \(HTTP 401, code 20003\)/);
  assert.not(error.outcomeUnknown);
  assert.not.match(lines.join() + error.stack, /hunter2|77009/);
  await rejects(other.send(ask()), RetryLaterError, /is not called/);
});

test('takes no message to where a redirect leads', async ({ server, sms }) => {
  const location = `${server.url}/elsewhere`;
  for (const status of [302, 307]) {
    once(server, { kind: 'answer', answer: { status, body: '', headers: { location } } });
    const refused = new RegExp(`a proxy refuses the request \\(HTTP ${status}\\)`);
    assert.not((await rejects(sms.send(ask()), ProviderError, refused)).outcomeUnknown);
  }
  assert.not(server.requested.some(({ path }) => path === '/elsewhere'));
});

test("a page in place of a refusal of Twilio's passes, and nothing is claimed", async ({ server, sms }) => {
  const request = ask();
  once(server, { kind: 'answer', answer: { status: 404, body: '<html>Not here</html>' } });
  assert.not(
    (await rejects(sms.send(request), ProviderError, /a proxy refuses the request \(HTTP 404\)/)).outcomeUnknown,
  );
  assert.equal(await sms.lookUp(about(request)), { outcome: 'never' });
  assert.is((await sms.send(request)).outcome, 'sent');
  assert.is(server.sent(request.launch_url), 1);
});

test('knows that nothing was sent to a server that does not listen', async ({ server, records }) => {
  const sms = await open(server, records, { apiUrl: 'http://127.0.0.1:2' });
  const request = ask();
  assert.not((await rejects(sms.send(request), ProviderError, /did not answer/)).outcomeUnknown);
  assert.equal(await sms.lookUp(about(request)), { outcome: 'never' });
});

test('sends nothing on a late request once a look-up that ends the attempt found nothing', async ({ server, sms }) => {
  const request = ask();
  const ended = { outcome: 'failed', cause: 'gift is redeemed', simulated: false };
  assert.equal(await sms.lookUp({ ...about(request), stopped: 'gift is redeemed' }), { outcome: 'never' });
  assert.equal(await sms.send(request), ended);
  assert.equal(await sms.lookUp(about(request)), ended);
  assert.is(server.sent(request.launch_url), 0);
  const sent = ask();
  await sms.send(sent);
  assert.is((await sms.lookUp({ ...about(sent), stopped: 'gift is redeemed' })).outcome, 'sent');
});

test('rate limits: nothing was sent, not now, for as long as Twilio says', async ({ server, sms }) => {
  const request = ask();
  once(server, { kind: 'limited', retryAfter: '3' });
  assert.is((await rejects(sms.send(request), RetryLaterError, /limits/)).afterMs, 3_000);
  await rejects(sms.send(request), RetryLaterError, /asks for a pause/);
  now += 3_001;
  assert.is((await sms.send(request)).outcome, 'sent');
  once(server, { kind: 'limited' });
  assert.is((await rejects(sms.send(ask()), RetryLaterError, /limits/)).afterMs, 1_000);
});

for (const kind of ['silence', 'lost', 'error'] as const) {
  test(`${kind} after it was sent: found by number and address, never sent again`, async ({ server, records, sms }) => {
    const request = ask();
    once(server, { kind, when: 'done' });
    assert.ok(
      (await rejects((await impatient(server, records)).send(request), ProviderError, /did not answer|failed/))
        .outcomeUnknown,
    );
    assert.ok((await rejects(sms.send(request), ProviderError, /another process is sending it/)).outcomeUnknown);
    // Now they have another number.
    assert.equal(await sms.lookUp({ ...about(request), to: ['+447700900999'] }), {
      outcome: 'sent',
      provider: 'twilio',
      message_id: server.messages[0]?.sid,
      simulated: false,
    });
    assert.is(server.sent(request.launch_url), 1);
  });

  test(`sends nothing again that may have been sent (${kind})`, async ({ server, records, sms }) => {
    const request = ask();
    once(server, { kind, when: 'undone' });
    assert.ok(
      (await rejects((await impatient(server, records)).send(request), ProviderError, /did not answer|failed/))
        .outcomeUnknown,
    );
    const wait = await rejects(sms.lookUp(about(request)), RetryLaterError, /not list the message yet/);
    assert.ok(wait.afterMs > SETTLE_MS - 50 && wait.afterMs <= SETTLE_MS);
    now += wait.afterMs;
    assert.equal(await sms.lookUp(about(request)), { outcome: 'unknown' });
    assert.ok((await rejects(sms.send(request), ProviderError, /another process is sending it/)).outcomeUnknown);
    assert.is(server.sent(request.launch_url), 0);
  });
}

test('sends again what never left this process, since no connection came about', async ({ server, records, sms }) => {
  const { lookup } = dns;
  const request = ask();
  const unreachable = await open(server, records, { apiUrl: 'http://no-answer.test:1' }, { timeoutMs: 150 });
  // A name server that is silent, as a firewall that drops what goes out.
  dns.lookup = (() => undefined) as unknown as typeof dns.lookup;
  try {
    const error = await rejects(unreachable.send(request), ProviderError, /did not answer/);
    assert.not(error.outcomeUnknown);
  } finally {
    dns.lookup = lookup;
  }
  assert.equal(await sms.lookUp(about(request)), { outcome: 'never' });
  assert.is((await sms.send(request)).outcome, 'sent');
  assert.is(server.sent(request.launch_url), 1);
});

test('looks a message up after an answer of another shape', async ({ server, records, sms }) => {
  for (const body of ['{}', '[]', 'null', '"ok"', '17', 'true', '{"sid":null}', '{"sid":17}', '{"messages":[]}']) {
    const request = ask();
    once(server, { kind: 'answer', answer: { status: 200, body } });
    assert.ok(
      (await rejects(sms.send(request), ProviderError, /Twilio (?:did not answer|answered with something else)/))
        .outcomeUnknown,
      body,
    );
    assert.is((await records.get<{ reply?: object }>(`send/${request.gift_id}`))?.value.reply, undefined, body);
    await rejects(sms.lookUp(about(request)), RetryLaterError, /not list the message yet/);
  }
});

test('waits no longer for an answer that comes byte by byte than for none', async ({ server, records, sms }) => {
  const request = ask();
  once(server, { kind: 'dripping', ms: 20 });
  assert.ok(
    (await rejects((await impatient(server, records)).send(request), ProviderError, /did not answer/)).outcomeUnknown,
  );
  assert.is((await sms.lookUp(about(request))).outcome, 'sent');
});

test('connections of answers that never end are given up with them: they would be all there are', async ({
  server,
  records,
}) => {
  const sms = await impatient(server, records);
  for (const part of [{}, { part: 'head' }] as const) {
    server.fault = () => ({ kind: 'dripping', ms: 20, ...part });
    await Promise.all(Array.from({ length: 5 }, async () => rejects(sms.send(ask()), ProviderError, /did not answer/)));
    await until(async () => (await server.connections()) === 0, 'no connection to be left');
  }
});

test('looks a message up after a proxy gave up waiting', async ({ server, sms }) => {
  for (const status of [408, 499]) {
    const request = ask();
    once(server, {
      kind: 'answer',
      when: 'done',
      answer: { status, body: 'stream timeout', headers: { 'Content-Type': 'text/plain' } },
    });
    assert.ok(
      (await rejects(sms.send(request), ProviderError, /a proxy refuses the request/)).outcomeUnknown,
      String(status),
    );
    assert.is((await sms.lookUp(about(request))).outcome, 'sent');
    assert.is(server.sent(request.launch_url), 1);
  }
});

test('waits no longer after the clock was set back', async ({ server, records, sms }) => {
  const request = ask();
  once(server, { kind: 'lost', when: 'undone' });
  await rejects((await impatient(server, records)).send(request), ProviderError, /did not answer/);
  const lookup = about(request);
  now -= 30 * 86_400_000;
  assert.is((await rejects(sms.lookUp(lookup), RetryLaterError, /not list the message yet/)).afterMs, SETTLE_MS);
});

test('sends nothing twice where an account hides texts or writes numbers otherwise', async ({
  server,
  records,
  sms,
}) => {
  const request = ask();
  once(server, { kind: 'silence', when: 'done' });
  await rejects((await impatient(server, records)).send(request), ProviderError, /did not answer/);
  const [message] = server.messages;
  server.messages[0] = { ...message, body: '' } as (typeof server.messages)[number];
  now += SETTLE_MS;
  assert.equal(await sms.lookUp(about(request)), { outcome: 'unknown' });
  assert.is(server.messages.length, 1);
});

test('asks for status callbacks, and believes them', async ({ server, records }) => {
  const sms = await open(server, records, {}, { callbackUrl: 'https://gift.test/webhooks/twilio' });
  const request = ask();
  const sent = await sms.send(request);
  assert.is(
    new URLSearchParams(server.requested.at(-1)?.body).get('StatusCallback'),
    `https://gift.test/webhooks/twilio?gift=${request.gift_id}`,
  );
  const again = { ...request, attempt: 2 };
  await sms.send(again);
  assert.is(
    new URLSearchParams(server.requested.at(-1)?.body).get('StatusCallback'),
    `https://gift.test/webhooks/twilio?gift=${request.gift_id}&attempt=2`,
    "what becomes of a later telling is that one's",
  );
  const ledger = await openLedger(records, () => now, logger);
  const failed = { outcome: 'failed', cause: 'not delivered (Twilio 30005)', simulated: false } as const;
  await ledger.learn(request.gift_id, { outcome: 'sent', provider: 'twilio', message_id: 'another', simulated: false });
  assert.equal(await sms.lookUp(about(request)), sent, 'what it answered stands');
  await ledger.learn(request.gift_id, failed);
  await ledger.learn(request.gift_id, { outcome: 'sent', provider: 'twilio', message_id: 'late', simulated: false });
  assert.equal(await sms.lookUp(about(request)), failed);
  const other = ask();
  once(server, { kind: 'silence', when: 'undone' });
  await rejects((await impatient(server, records)).send(other), ProviderError, /did not answer/);
  await ledger.learn(other.gift_id, { outcome: 'sent', provider: 'twilio', message_id: 'SM1', simulated: false });
  assert.equal(await sms.lookUp(about(other)), {
    outcome: 'sent',
    provider: 'twilio',
    message_id: 'SM1',
    simulated: false,
  });
  const refused = ask('+15005550007');
  await rejects(sms.send(refused), RefusedError, /refuses the request/);
  await ledger.learn(refused.gift_id, failed);
  assert.equal(
    await ledger.once(
      refused.gift_id,
      '',
      () => Promise.reject(new Error('sent again')),
      () => true,
    ),
    failed,
    'on a claim that was given up too',
  );
  const lost = ask();
  await ledger.learn(lost.gift_id, failed);
  assert.equal(await sms.lookUp(about(lost)), failed, 'without a claim too');
});

test('looks up at the provider without records: sent, failed, never, unknown', async ({ server, records, sms }) => {
  const [one, other] = [ask(), ask()];
  await sms.send(one);
  await sms.send(other);
  const [last] = server.messages;
  if (last !== undefined) Object.assign(last, { status: 'undelivered', error_code: 30_005 });
  for (const { key } of await records.list('')) await records.delete(key);
  assert.is((await sms.lookUp(about(one))).outcome, 'sent');
  assert.equal(await sms.lookUp(about(other)), {
    outcome: 'failed',
    cause: 'not delivered (Twilio 30005)',
    simulated: false,
  });
  if (last !== undefined) Object.assign(last, { status: 'failed', error_code: null });
  assert.equal(await sms.lookUp(about(other)), {
    outcome: 'failed',
    cause: 'not delivered (Twilio failed)',
    simulated: false,
  });
  if (last !== undefined) Object.assign(last, { status: 'canceled' });
  assert.equal(await sms.lookUp(about(other)), {
    outcome: 'failed',
    cause: 'not delivered (Twilio canceled)',
    simulated: false,
  });
  assert.equal(await sms.lookUp(about(ask('+447700900124'), now - SETTLE_MS)), { outcome: 'unknown' });
  assert.equal(await sms.lookUp({ ...about(ask(), now - SETTLE_MS), to: [] }), { outcome: 'unknown' });
  // A message of long ago was for something else.
  if (last !== undefined) last.date_created = new Date(now - 3_600_000).toUTCString();
  assert.equal(await sms.lookUp(about(other, now - SETTLE_MS)), { outcome: 'unknown' });
  for (let n = 0; n < 400; n++)
    server.messages.unshift({
      ...last,
      body: 'another',
      date_created: new Date(now).toUTCString(),
    } as (typeof server.messages)[number]);
  assert.equal(await sms.lookUp(about(ask(), now - SETTLE_MS)), { outcome: 'unknown' });
});

test('fails a look-up that the provider fails', async ({ server, records, sms }) => {
  const request = ask();
  for (const { key } of await records.list('')) await records.delete(key);
  once(server, { kind: 'error', when: 'undone' }, () => true);
  await rejects(sms.lookUp(about(request)), ProviderError, /failed/);
});

test('sends nothing again though the records fail', async ({ server, records }) => {
  const request = ask();
  const failing: Records = {
    ...records,
    put: async (key, value, options) =>
      (value as { reply?: object }).reply === undefined
        ? records.put(key, value, options)
        : Promise.reject(new Error('down')),
  };
  const sms = await open(server, failing);
  assert.is((await sms.send(request)).outcome, 'sent');
  await rejects(sms.send(request), ProviderError, /another process is sending it/);
  assert.is((await sms.lookUp(about(request))).outcome, 'sent');
  const failingToo: Records = {
    ...records,
    put: async (key, value, options) =>
      (value as { abandoned?: true }).abandoned === undefined
        ? records.put(key, value, options)
        : Promise.reject(new Error('down')),
  };
  const stuck = await open(server, failingToo, { apiUrl: 'http://127.0.0.1:2' });
  await rejects(stuck.send(ask()), ProviderError, /did not answer/);
});

test('gives a claim up whose storing was not confirmed', async ({ server, records }) => {
  const request = ask();
  const lost = { answers: 1, withdrawals: 1 };
  const sms = await open(server, {
    ...records,
    async put(key, value, options) {
      if ((value as { abandoned?: true }).abandoned === true && lost.withdrawals-- > 0)
        throw new UnavailableError('down');
      const version = await records.put(key, value, options);
      if (key.startsWith('send/') && lost.answers-- > 0)
        throw new UnavailableError('no answer', { outcomeUnknown: true });
      return version;
    },
  });
  await rejects(sms.send(request), UnavailableError, /no answer/);
  await rejects(sms.lookUp(about(request)), UnavailableError, /down/);
  assert.equal(await sms.lookUp(about(request)), { outcome: 'never' });
  assert.is((await sms.send(request)).outcome, 'sent');
  assert.is((await sms.lookUp(about(request))).outcome, 'sent');
  assert.is(server.sent(request.launch_url), 1);

  // Nor one that could not be given up after nothing was sent.
  const other = ask();
  lost.withdrawals = 1;
  once(server, { kind: 'limited', retryAfter: '1' });
  await rejects(sms.send(other), RetryLaterError, /limits/);
  now += 2_000;
  assert.equal(await sms.lookUp(about(other, now - 2_010)), { outcome: 'never' });
  assert.is((await sms.send(other)).outcome, 'sent');
  assert.is(server.sent(other.launch_url), 1);
});

test('lets what is over a limit through later, and counts nothing twice', async ({ server, records }) => {
  const sms = await open(server, records, {}, {}, { perNumber: 2, perBuyer: 3, windowMs: 60_000 });
  const [a, b, c] = [ask(), ask(), ask()];
  await sms.send(a);
  await sms.send(b);
  const held = await rejects(sms.send(c), RetryLaterError, /^held back: too many messages to this number$/);
  assert.ok(held.limited && held.afterMs > 50_000 && held.afterMs <= 60_000);
  assert.equal(await sms.lookUp(about(c)), { outcome: 'never' });
  await rejects(sms.send(ask('+447700900124')), RetryLaterError, /by this buyer/);
  await sms.send(ask('+447700900124', { buyer_id: 'bob' }));
  assert.is((await sms.send(a)).outcome, 'sent');
  now += 60_001;
  assert.is((await sms.send(c)).outcome, 'sent');
  assert.is(server.messages.length, 4);
  assert.not.match(JSON.stringify((await records.list('sms')).map(({ key }) => key)), /77009/);
});

test('has no reminder delivered after its hours, and other messages as long as Twilio tries', async ({
  server,
  records,
}) => {
  const sms = await open(server, records);
  const validity = (): string | null => new URLSearchParams(server.requested.at(-1)?.body).get('ValidityPeriod');
  const until = (seconds: number): object => ({
    expires_on: '2027-01-01',
    until: new Date(now + seconds * 1_000).toISOString(),
  });
  await sms.send(ask());
  assert.is(validity(), null);
  for (const [seconds, expected] of [
    [3_600, '3600'],
    [1, '5'],
    [86_400, '36000'],
  ] as const) {
    await sms.send(ask('+447700900123', until(seconds)));
    assert.is(validity(), expected);
  }
});

test('counts reminders for the number only, since their buyer causes none', async ({ server, records }) => {
  const sms = await open(server, records, {}, {}, { perNumber: 2, perBuyer: 1, windowMs: 60_000 });
  const reminder = { expires_on: '2027-01-01', message: '' };
  await sms.send(ask('+447700900131', reminder));
  await sms.send(ask('+447700900132', reminder));
  await sms.send(ask('+447700900133'));
  await rejects(sms.send(ask('+447700900134')), RetryLaterError, /by this buyer/);
  await sms.send(ask('+447700900135', reminder));
  await sms.send(ask('+447700900135', reminder));
  await rejects(sms.send(ask('+447700900135', reminder)), RetryLaterError, /to this number/);
  assert.is(server.messages.length, 5);
});

test("lets nothing through that can't be counted", async ({ server, records }) => {
  const down = new Error('down');
  const sms = await open(server, {
    ...records,
    get: async (key) => (key.startsWith('sms-') ? Promise.reject(down) : records.get(key)),
  });
  await rejects(sms.send(ask()), Error, /^down$/);
  assert.is(server.messages.length, 0);
});

test('knows that nothing was sent that a limit held back for days', async ({ server, records }) => {
  const HOURS = 3_600_000;
  const limits = { perNumber: 1, windowMs: 1_000 };
  const sms = await open(server, records, {}, {}, limits);
  const waiting = ask();
  const begun = now - 10;
  for (let days = 0; days < 3; days++) {
    await sms.send(ask());
    await rejects(sms.send(waiting), RetryLaterError, /too many messages to this number/);
    now += 30 * HOURS;
  }
  const afterRestart = await open(server, records, {}, {}, limits);
  assert.equal(await afterRestart.lookUp(about(waiting, begun)), { outcome: 'never' });
  // Nobody has looked since: it may have been sent, and what was noted of that forgotten.
  now += 30 * HOURS;
  assert.equal(await afterRestart.lookUp(about(waiting, begun)), { outcome: 'unknown' });
  await sms.send(waiting);
  assert.is((await afterRestart.lookUp(about(waiting, begun))).outcome, 'sent');
  assert.is(server.sent(waiting.launch_url), 1);
});

test('nothing is sent while the limits cannot be counted', async ({ server, records }) => {
  const sms = await open(server, {
    ...records,
    put: async (key, ...more) =>
      key.startsWith('sms') ? Promise.reject(new UnavailableError('down')) : records.put(key, ...more),
  });
  await rejects(sms.send(ask()), UnavailableError, /down/);
  assert.is(server.messages.length, 0);
});

test('a purchase of many receivers is one unit, by two processes too', async ({ server, records }) => {
  const limits = { perNumber: 1, perBuyer: 2 };
  const [one, two] = await Promise.all([open(server, records, {}, {}, limits), open(server, records, {}, {}, limits)]);
  const bulk = Array.from({ length: 40 }, (_, n) =>
    ask(`+4477009001${String(n % 20).padStart(2, '0')}`, { transaction_id: 'bulk' }),
  );
  await Promise.all(bulk.map((request, n) => (n % 2 === 0 ? one : two).send(request)));
  assert.is(server.messages.length, 40);
  await one.send(ask('+447700900999'));
  await rejects(two.send(ask('+447700900998')), RetryLaterError, /by this buyer/);
});

test.run();
