import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Records } from '../../../src/ports/readStore.js';
import type { SendLookup, SendRequest } from '../../../src/messages/notifications.js';
import { type FcmDeps, fcmPush, type FcmSettings } from '../../../src/providers/notifications/fcm.js';
import { openLedger } from '../../../src/providers/notifications/ledger.js';
import type { NotificationProvider } from '../../../src/providers/notifications/provider.js';
import { RetryLaterError } from '../../../src/messages/workerFailure.js';
import { RefusedError, ProviderError } from '../../../src/providers/providerErrors.js';
import { type FcmServer, openFcmServer } from '../../support/providers/fcmServer.js';
import { memoryRecords } from '../../support/engines/memoryRecords.js';
import { rejects } from '../../support/assertions/rejects.js';
import type { Requested, Fault } from '../../support/providers/standIn.js';

interface Context {
  server: FcmServer;
  records: Records;
  push: NotificationProvider;
}
const test = suite<Context>('push by fcm');

const HOUR = 3_600_000;
let now = Date.now();
let lines: string[] = [];
const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(line) });

async function open(
  server: FcmServer,
  records: Records,
  more: Partial<FcmSettings> = {},
  deps: Partial<FcmDeps> = {},
): Promise<NotificationProvider> {
  const { projectId, clientEmail, privateKey, tokenUrl, url } = server;
  const time = (): number => now;
  return fcmPush(
    { projectId, clientEmail, privateKey, tokenUrl, apiUrl: url, ...more },
    {
      logger,
      ledger: await openLedger(records, time, logger),
      now: time,
      timeoutMs: 5_000,
      settleMs: 400,
      circuitBreaker: { failures: 50 },
      ...deps,
    },
  );
}

test.before.each(async (context) => {
  now = Date.now();
  lines = [];
  context.server = await openFcmServer(() => now);
  context.records = memoryRecords(() => now);
  context.push = await open(context.server, context.records);
});
test.after.each((context) => context.server.close());

let serial = 0;
const ask = (to: readonly string[] = ['device-1'], more: Partial<SendRequest> = {}): SendRequest => {
  const id = `gift${++serial}`;
  return {
    gift_id: id,
    transaction_id: 't',
    buyer_id: 'ann',
    channel: 'push',
    to,
    sender_name: 'Ann',
    product_name: 'Latte',
    message: 'Enjoy',
    launch_url: `https://gift.test/g/${id}`,
    locale: 'de-AT',
    ...more,
  };
};
const about = ({ gift_id, to, launch_url }: SendRequest): SendLookup => ({
  gift_id,
  to,
  launch_url,
  channel: 'push',
  started_at: new Date(now).toISOString(),
});
const isSend = ({ path }: Requested): boolean => path.endsWith(':send');
function once(server: FcmServer, fault: Fault, which: (requested: Requested) => boolean = isSend): void {
  server.fault = (requested) => {
    if (!which(requested)) return undefined;
    server.fault = () => undefined;
    return fault;
  };
}

test("sends to every device in the receiver's language, tagged with the gift", async ({ server, push }) => {
  const devices = Array.from({ length: 12 }, (_, n) => `device-${n}`);
  const request = ask(devices);
  const reply = await push.send(request);
  assert.is(reply.outcome, 'sent');
  assert.match(reply.outcome === 'sent' ? reply.message_id : '', /^projects\/gifts-test\/messages\/0:/);
  assert.equal(server.messages.map(({ token }) => token).toSorted(), devices.toSorted());
  const { gift_id, launch_url } = request;
  assert.equal(
    server.messages.find(({ token }) => token === 'device-3'),
    {
      token: 'device-3',
      notification: { title: 'Ann hat Ihnen ein Geschenk geschickt: Latte.', body: `Enjoy\n${launch_url}` },
      data: { gift_id, launch_url },
      android: { notification: { tag: gift_id } },
      apns: { headers: { 'apns-collapse-id': gift_id } },
      webpush: { notification: { tag: gift_id }, fcm_options: { link: launch_url } },
    },
  );
  assert.equal(await push.send(request), reply);
  assert.equal(await push.lookUp(about(request)), reply);
  assert.is(server.messages.length, 12);
  await push.send(ask(['device-x'], { launch_url: 'http://gift.test/g/x' }));
  assert.is(server.messages.at(-1)?.webpush.fcm_options, undefined);
});

test('has no reminder shown after its hours at a device that is off until then', async ({ server, push }) => {
  const until = new Date(Math.ceil(now / 1_000) * 1_000 + HOUR).toISOString();
  await push.send(ask(['device-1'], { expires_on: '2027-01-01', until, message: '' }));
  const [message] = server.messages as unknown as readonly {
    readonly android: { readonly ttl?: string };
    readonly apns: { readonly headers: Readonly<Record<string, string>> };
    readonly webpush: { readonly headers?: { readonly TTL?: string } };
  }[];
  const left = Math.floor((Date.parse(until) - now) / 1_000);
  assert.equal(
    [message?.android.ttl, message?.apns.headers['apns-expiration'], message?.webpush.headers?.TTL],
    [`${left}s`, String(Date.parse(until) / 1_000), String(left)],
  );
});

test('asks for an access token once an hour, and for another when it is refused', async ({ server, push }) => {
  await Promise.all([push.send(ask()), push.send(ask()), push.send(ask())]);
  assert.is(server.tokens, 1);
  now += HOUR;
  await push.send(ask());
  assert.is(server.tokens, 2);
  server.revoke();
  const request = ask();
  assert.not(
    (await rejects(push.send(request), ProviderError, /refuses our credentials \(HTTP 401, UNAUTHENTICATED/))
      .outcomeUnknown,
  );
  assert.is((await push.send(request)).outcome, 'sent');
  assert.is(server.tokens, 3);
});

test('no token, no message: it passes, and the key is never shown', async ({ server, records, push }) => {
  const other = await open(server, records, { clientEmail: 'stranger@example.com' });
  assert.not((await rejects(other.send(ask()), ProviderError, /gives no token \(HTTP 400/)).outcomeUnknown);
  once(server, { kind: 'silence', when: 'undone' }, () => true);
  await rejects(
    (await open(server, records, {}, { timeoutMs: 150 })).send(ask()),
    ProviderError,
    /did not answer with a token/,
  );
  once(server, { kind: 'limited', retryAfter: '2' }, () => true);
  assert.is((await rejects(push.send(ask()), RetryLaterError, /limits our requests for tokens/)).afterMs, 2_000);
  now += 2_001;
  once(server, { kind: 'limited' }, () => true);
  assert.is((await rejects(push.send(ask()), RetryLaterError, /tokens/)).afterMs, 1_000);
  now += 1_001;
  once(server, { kind: 'answer', answer: { status: 200, body: { access_token: 7 } } }, () => true);
  await rejects(push.send(ask()), ProviderError, /gives no token/);
  const nowhere = await open(server, records, { tokenUrl: 'http://127.0.0.1:2' });
  await rejects(nowhere.send(ask()), ProviderError, /cannot be reached/);
  assert.not.match(lines.join(), 'PRIVATE');
});

test('sends to the devices that are left; fails with the causes where none is', async ({ server, push }) => {
  assert.is((await push.send(ask(['unregistered-1', 'device-1', 'invalid-1']))).outcome, 'sent');
  const request = ask(['unregistered-1', 'unregistered-2', 'invalid-1', 'foreign-1']);
  const failed = {
    outcome: 'failed',
    cause:
      'device is not registered any more (FCM UNREGISTERED), invalid device token (FCM INVALID_ARGUMENT), device belongs to another sender (FCM SENDER_ID_MISMATCH)',
    simulated: false,
  };
  assert.equal(await push.send(request), failed);
  assert.equal(await push.lookUp(about(request)), failed);
  assert.is(server.messages.length, 1);
  // Of a token that never was one FCM also says which field it stands in.
  const details = [
    { errorCode: 'INVALID_ARGUMENT' },
    { fieldViolations: [{ field: 'message.token', description: 'Invalid registration token' }] },
  ];
  once(server, { kind: 'answer', answer: { status: 400, body: { error: { status: 'INVALID_ARGUMENT', details } } } });
  assert.equal(await push.send(ask(['garbled-1'])), {
    outcome: 'failed',
    cause: 'invalid device token (FCM INVALID_ARGUMENT)',
    simulated: false,
  });
});

test('refuses a message that no device would get, and blames no token for it', async ({ server, push }) => {
  const bad = (error: object): void =>
    once(server, {
      kind: 'answer',
      answer: { status: 400, body: { error: { code: 400, status: 'INVALID_ARGUMENT', ...error } } },
    });
  const said = [{ '@type': 'type.googleapis.com/google.firebase.fcm.v1.FcmError', errorCode: 'INVALID_ARGUMENT' }];
  // Google's front could not read it.
  bad({ message: 'Invalid JSON payload received. Unknown name "titel" at \'message.notification\'' });
  await rejects(push.send(ask()), RefusedError, /FCM refuses the request \(HTTP 400, INVALID_ARGUMENT\)/);
  // FCM does not say what is wrong: the same device takes an empty message.
  bad({ message: 'Request contains an invalid argument.', details: said });
  await rejects(push.send(ask()), RefusedError, /FCM refuses the message \(HTTP 400, INVALID_ARGUMENT\)/);
  assert.is(server.messages.length, 0, 'the empty message is checked, not sent');
  bad({ message: 'The registration token is not a valid FCM registration token', details: said });
  assert.equal(await push.send(ask(['garbled-1'])), {
    outcome: 'failed',
    cause: 'invalid device token (FCM INVALID_ARGUMENT)',
    simulated: false,
  });
  bad({ message: 'Request contains an invalid argument.', details: said });
  assert.equal(await push.send(ask(['invalid-1'])), {
    outcome: 'failed',
    cause: 'invalid device token (FCM INVALID_ARGUMENT)',
    simulated: false,
  });
});

test("retries later what can't be sent now; one device is enough", async ({ server, push }) => {
  once(server, { kind: 'error', when: 'undone' });
  assert.is((await push.send(ask(['device-1', 'device-2']))).outcome, 'sent');
  const request = ask(['unregistered-1', 'device-1']);
  once(server, { kind: 'error', when: 'undone' }, ({ body }) => body.includes('device-1'));
  assert.ok((await rejects(push.send(request), ProviderError, /FCM failed \(HTTP 500, INTERNAL/)).outcomeUnknown);
  assert.equal(await push.lookUp(about(request)), { outcome: 'never' });
  assert.is((await push.send(request)).outcome, 'sent');
});

test('sends nothing on a late request once a look-up that ends the attempt found nothing', async ({ server, push }) => {
  const request = ask();
  assert.equal(await push.lookUp({ ...about(request), stopped: 'gift is redeemed' }), { outcome: 'never' });
  assert.equal(await push.send(request), { outcome: 'failed', cause: 'gift is redeemed', simulated: false });
  assert.is(server.messages.length, 0);
});

for (const kind of ['silence', 'lost', 'error'] as const) {
  test(`${kind} after it was sent: sent again, in place of the one before`, async ({ server, records, push }) => {
    const request = ask();
    // With its token.
    const impatient = await open(server, records, {}, { timeoutMs: 300 });
    await impatient.send(ask());
    once(server, { kind, when: 'done' });
    await rejects(impatient.send(request), ProviderError, /did not answer|failed/);
    assert.equal(await push.lookUp(about(request)), { outcome: 'never' });
    assert.is((await push.send(request)).outcome, 'sent');
    assert.is(server.messages.length, 3);
    assert.is(server.shown('device-1').size, 2);
  });
}

test('an attempt that died is taken up after a while', async ({ server, records, push }) => {
  const request = ask();
  await records.put(`send/${request.gift_id}`, { to: '', at: now });
  const wait = await rejects(push.lookUp(about(request)), RetryLaterError, /may be under way/);
  assert.is(wait.afterMs, 400);
  now -= 30 * 24 * HOUR;
  assert.is(
    (await rejects(push.lookUp(about(request)), RetryLaterError, /may be under way/)).afterMs,
    400,
    'the clock was set back',
  );
  now += 30 * 24 * HOUR + 400;
  assert.equal(await push.lookUp(about(request)), { outcome: 'never' });
  const abandoned = await records.get<{ abandoned?: true }>(`send/${request.gift_id}`);
  assert.ok(abandoned?.value.abandoned, 'a deletion that is carried out late would take away the next claim');
  assert.is((await push.send(request)).outcome, 'sent');
  assert.ok(((await records.get(`send/${request.gift_id}`))?.version ?? 0) > abandoned.version);
  assert.is(server.messages.length, 1);
});

test('a claim that changes hands meanwhile is left alone', async ({ server, records }) => {
  const push = await open(server, {
    ...records,
    put: async (key, value, options) => (key.startsWith('send/') ? undefined : records.put(key, value, options)),
  });
  const request = ask();
  await records.put(`send/${request.gift_id}`, { to: '', at: now - 1_000 });
  await rejects(push.lookUp(about(request)), RetryLaterError, /just been made/);
});

test('keeps a claim that is new or has its answer', async ({ records }) => {
  const ledger = await openLedger(records, () => now, logger);
  await records.put('send/g', { to: '', at: now });
  assert.equal(
    [await ledger.release('g', now), await ledger.release('g', now + 1), await ledger.find('g')],
    [false, true, undefined],
  );
  await ledger.learn('g', { outcome: 'sent', provider: 'fcm', message_id: 'm', simulated: false });
  assert.is(await ledger.release('g', now + 1), false);
});

test('limits and overload: not now, for as long as Google says', async ({ server, push }) => {
  once(server, { kind: 'limited', retryAfter: '5' });
  assert.is(
    (await rejects(push.send(ask()), RetryLaterError, /limits our requests \(HTTP 429, QUOTA_EXCEEDED/)).afterMs,
    5_000,
  );
  await rejects(push.send(ask()), RetryLaterError, /asks for a pause/);
  now += 5_001;
  once(server, { kind: 'limited' });
  assert.is((await rejects(push.send(ask()), RetryLaterError, /limits/)).afterMs, 60_000);
  now += 60_001;
  const overloaded = { status: 503, body: { error: { status: 'UNAVAILABLE' } } };
  once(server, {
    kind: 'answer',
    answer: { ...overloaded, headers: { 'Retry-After': new Date(Date.now() + 3_000_000).toUTCString() } },
  });
  assert.ok((await rejects(push.send(ask()), RetryLaterError, /overloaded/)).afterMs > 2_900_000);
  now += 3_000_000;
  // What stands before FCM answers with a page.
  once(server, { kind: 'answer', answer: { status: 429, body: '<html>', headers: { 'Retry-After': '7' } } });
  assert.is((await rejects(push.send(ask()), RetryLaterError, /limits our requests \(HTTP 429\)/)).afterMs, 7_000);
  now += 7_001;
  once(server, { kind: 'answer', answer: { ...overloaded, headers: { 'Retry-After': 'soon' } } });
  assert.is((await rejects(push.send(ask()), RetryLaterError, /overloaded/)).afterMs, 60_000);
  now += 60_001;
  once(server, { kind: 'answer', answer: overloaded });
  await rejects(push.send(ask()), ProviderError, /FCM failed \(HTTP 503, UNAVAILABLE/);
});

test('a request that is wrong is refused; an answer that makes no sense is unknown', async ({ server, push }) => {
  const violation = {
    '@type': 'type.googleapis.com/google.rpc.BadRequest',
    fieldViolations: [{ field: 'message.data[0].value', description: 'odd' }],
  };
  once(server, {
    kind: 'answer',
    answer: { status: 400, body: { error: { status: 'INVALID_ARGUMENT', details: [violation] } } },
  });
  await rejects(push.send(ask()), RefusedError, /FCM refuses the request \(HTTP 400, INVALID_ARGUMENT/);
  once(server, { kind: 'answer', answer: { status: 404, body: 'null' } });
  assert.not(
    (await rejects(push.send(ask()), ProviderError, /a proxy refuses the request before FCM \(HTTP 404\)/))
      .outcomeUnknown,
  );
  once(server, { kind: 'answer', answer: { status: 200, body: {} } });
  assert.ok((await rejects(push.send(ask()), ProviderError, /without a name/)).outcomeUnknown);
  once(server, { kind: 'answer', answer: { status: 200, body: '<html>' } });
  assert.ok((await rejects(push.send(ask()), ProviderError, /did not answer/)).outcomeUnknown);
});

test('takes no message and no key to where a redirect leads', async ({ server, push }) => {
  const other = await openFcmServer(() => now);
  const redirect = (status: number): Fault => {
    const location = `${other.url}/v1/projects/gifts-test/messages:send`;
    return { kind: 'answer', answer: { status, body: '', headers: { location } } };
  };
  try {
    once(server, redirect(308), ({ path }) => path === '/token');
    await rejects(push.send(ask()), ProviderError, /Google gives no token \(HTTP 308\)/);
    for (const status of [307, 302]) {
      once(server, redirect(status));
      const refused = new RegExp(`a proxy refuses the request before FCM \\(HTTP ${status}\\)`);
      assert.not((await rejects(push.send(ask()), ProviderError, refused)).outcomeUnknown);
    }
    assert.equal(other.requested, []);
    assert.is((await push.send(ask())).outcome, 'sent');
  } finally {
    await other.close();
  }
});

test.run();
