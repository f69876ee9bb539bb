/** What Twilio tells of its messages, signed by Twilio's own library, to a service that sends by the stand-ins. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import twilio from 'twilio';
import { suite } from 'uvu';
import { ConflictError } from '../../../src/ports/eventStore.js';
import { type FcmServer, openFcmServer } from '../../support/providers/fcmServer.js';
import { buyOne, refused } from '../../support/service/giftFlow.js';
import { requestText, sendRaw } from '../../support/service/rawHttp.js';
import { notificationSettings } from '../../support/providers/realProviders.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { openTwilioServer, type TwilioServer } from '../../support/providers/twilioServer.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('callbacks of twilio');
const PUBLIC_URL = 'https://gift.example.com';
let server: TwilioServer;
let fcm: FcmServer;
let service: Service;

test.before(async () => {
  [server, fcm] = await Promise.all([openTwilioServer(), openFcmServer()]);
  service = await startService({ env: { PUBLIC_URL, ...notificationSettings(server, fcm) } });
});
test.after(async () => {
  await service.close();
  await Promise.all([server.close(), fcm.close()]);
});

const typesOf = async (gift: string): Promise<string[]> =>
  (await service.events.read(`notification-${gift}`)).map(({ type }) => type);

/** A gift whose receiver has been told, and Twilio's id of the message. */
async function told(number: string): Promise<{ gift: string; sid: string }> {
  const gift = await buyOne(service, 'latte', { phone_number: number });
  const sid = await eventually(
    async () => server.messages.find(({ body }) => body.includes(service.shortcodeOf(gift)))?.sid,
  );
  await eventually(async () => (await typesOf(gift)).includes('NotificationSent'));
  return { gift, sid };
}

async function tell(
  gift: string,
  fields: Readonly<Record<string, string>>,
  more: { readonly token?: string; readonly body?: string; readonly signature?: string } = {},
): Promise<Reply> {
  const path = `/webhooks/twilio?gift=${gift}`;
  const form = { AccountSid: server.accountSid, To: '+447700900123', ...fields };
  const signature =
    more.signature ?? twilio.getExpectedTwilioSignature(more.token ?? server.authToken, PUBLIC_URL + path, form);
  const headers = { 'x-twilio-signature': signature, 'content-type': 'application/x-www-form-urlencoded' };
  return service.ask('POST', path, { headers, body: more.body ?? new URLSearchParams(form).toString() });
}
const answered = (reply: Reply, outcome: string): void =>
  assert.deepEqual(
    [reply.status, reply.json, reply.headers.get('cache-control')],
    [200, { received: true, outcome }, 'no-store'],
  );

test('a message that could not be delivered is noted once, after it was sent, by Twilio', async () => {
  const { gift, sid } = await told('+447700900501');
  const create = server.requested.find(
    ({ method, body }) => method === 'POST' && body.includes(service.shortcodeOf(gift)),
  );
  assert.equal(new URLSearchParams(create?.body).get('StatusCallback'), `${PUBLIC_URL}/webhooks/twilio?gift=${gift}`);
  answered(await tell(gift, { MessageSid: sid, MessageStatus: 'sent' }), 'known');
  const failed = { MessageSid: sid, MessageStatus: 'undelivered', ErrorCode: '30005' };
  answered(await tell(gift, failed), 'recorded');
  answered(await tell(gift, failed), 'known');
  answered(await tell(gift, { ...failed, MessageStatus: 'failed' }), 'known');
  assert.deepEqual(await typesOf(gift), ['NotificationStarted', 'NotificationSent', 'NotificationUndelivered']);
  const noted = (await service.events.read(`notification-${gift}`)).at(-1);
  assert.deepEqual(noted?.data, { provider: 'twilio', message_id: sid, cause: 'not delivered (Twilio 30005)' });
  assert.deepEqual(noted?.metadata.by, { user: 'system:twilio' });
  const history = await service.ask('GET', `/ops/gifts/${gift}/history`, { token: await service.userToken('aud') });
  assert.match(history.text, /NotificationUndelivered/);
});

test('forged, altered, replayed for another gift: refused, nothing changed', async () => {
  const { gift, sid } = await told('+447700900502');
  const other = await told('+447700900503');
  const fields = { MessageSid: sid, MessageStatus: 'undelivered' };
  refused(await tell(gift, fields, { token: 'another-token-of-somebody' }), 400, 'Invalid signature.');
  refused(await tell(gift, fields, { signature: '' }), 400, 'Invalid signature.');
  refused(
    await tell(gift, fields, {
      body: new URLSearchParams({ ...fields, AccountSid: server.accountSid, To: '+447700900999' }).toString(),
    }),
    400,
    'Invalid signature.',
  );
  const form = { AccountSid: server.accountSid, To: '+447700900123', ...fields };
  refused(
    await tell(other.gift, fields, {
      signature: twilio.getExpectedTwilioSignature(
        server.authToken,
        `${PUBLIC_URL}/webhooks/twilio?gift=${gift}`,
        form,
      ),
    }),
    400,
    'Invalid signature.',
  );
  for (const one of [gift, other.gift])
    assert.deepEqual(await typesOf(one), ['NotificationStarted', 'NotificationSent']);
  assert.doesNotMatch(service.log.join(''), /77009|another-token/);
});

test('does not look at more fields than Twilio ever sends', async () => {
  const { gift, sid } = await told('+447700900507');
  const many = Object.fromEntries(Array.from({ length: 3_000 }, (_, n) => [`f${n}`, '']));
  refused(await tell(gift, { MessageSid: sid, MessageStatus: 'undelivered', ...many }), 413, 'Request too large.');
  assert.deepEqual(await typesOf(gift), ['NotificationStarted', 'NotificationSent']);
  answered(await tell(gift, { MessageSid: sid, MessageStatus: 'undelivered', More: 'x'.repeat(8_000) }), 'recorded');
});

test('what says nothing that matters is ignored', async () => {
  const { gift, sid } = await told('+447700900504');
  answered(await tell('nonsense', { MessageSid: sid, MessageStatus: 'undelivered' }), 'ignored');
  answered(await tell(gift, { MessageSid: 'nonsense', MessageStatus: 'undelivered' }), 'ignored');
  answered(await tell(gift, { MessageSid: sid, MessageStatus: 'perhaps' }), 'ignored');
  answered(
    await tell(gift, { AccountSid: `AC${'0'.repeat(32)}`, MessageSid: sid, MessageStatus: 'undelivered' }),
    'ignored',
  );
  assert.deepEqual(await typesOf(gift), ['NotificationStarted', 'NotificationSent']);
});

test('keeps a callback whose message was not recorded as sent, for later look-ups', async () => {
  const { gift } = await told('+447700900505');
  const sid = `SM${'a'.repeat(32)}`;
  const began = performance.now();
  answered(await tell(gift, { MessageSid: sid, MessageStatus: 'failed' }), 'known');
  assert.ok(performance.now() - began >= 4_900, 'its sending is waited for');
  assert.deepEqual(await typesOf(gift), ['NotificationStarted', 'NotificationSent']);
  const logged = service.log.find((line) => line.includes('could not be delivered'));
  if (service.log.length > 0) assert.equal((JSON.parse(logged ?? '{}') as { gift?: string }).gift, gift.slice(0, 6));
  answered(await tell(`${gift}&attempt=2`, { MessageSid: `SM${'b'.repeat(32)}`, MessageStatus: 'sent' }), 'known');
  const store = await service.openStore();
  try {
    const replyOf = async (telling: string): Promise<Json> =>
      (await store.records.get<Json>(`send/${telling}`))?.value.reply;
    assert.deepEqual(await replyOf(gift), {
      outcome: 'failed',
      cause: 'not delivered (Twilio failed)',
      simulated: false,
    });
    assert.equal((await replyOf(`${gift}/2`)).message_id, `SM${'b'.repeat(32)}`);
  } finally {
    await store.close();
  }
});

for (const attempt of [1, 2]) {
  test(`records an undelivered message before its sending: attempt ${attempt} failed, and stays so`, async () => {
    const { gift } = await told(`+44770090050${7 + attempt}`);
    const stream = `notification-${gift}`;
    const [started] = await service.events.read(stream);
    if (started === undefined) throw new Error('nobody was told');
    // As a process that is frozen leaves it.
    const other = `${gift.slice(0, -4)}${gift.endsWith('0000') ? '1111' : '0000'}`;
    const requested = { attempt, asked_by: 'an-ask' };
    await service.events.append(
      `notification-${other}`,
      [
        {
          id: randomUUID(),
          type: 'NotificationStarted',
          data: { ...started.data, ...requested },
          at: started.at,
          metadata: started.metadata,
        },
      ],
      'none',
    );
    const failed = { MessageSid: `SM${'b'.repeat(31)}${attempt}`, MessageStatus: 'undelivered', ErrorCode: '30005' };
    const path = attempt === 1 ? other : `${other}&attempt=${attempt}`;
    answered(await tell(path, failed), 'recorded');
    answered(await tell(path, failed), 'known');
    const [, ended, ...more] = await service.events.read(`notification-${other}`);
    assert.deepEqual(
      [ended?.type, ended?.data, ended?.metadata.by, more],
      ['NotificationFailed', { cause: 'not delivered (Twilio 30005)', ...requested }, { user: 'system:twilio' }, []],
    );
    // What that process appends once it goes on.
    const late = {
      id: randomUUID(),
      type: 'NotificationSent',
      data: { provider: 'twilio', message_id: failed.MessageSid, simulated: false, ...requested },
      at: started.at,
      metadata: started.metadata,
    };
    await assert.rejects(service.events.append(`notification-${other}`, [late], 0), ConflictError);
  });
}

test('logs no error for a caller that leaves in the middle of a message', async () => {
  const head = requestText('POST', '/webhooks/twilio?gift=x', {
    'Content-Length': '100',
    'X-Request-Id': 'broken-off',
  });
  assert.equal(await sendRaw(service.url, [head, 'To=1'], { waitMs: 100 }), undefined);
  if (service.log.length === 0) return;
  const line = await eventually(async () => service.log.find((one) => one.includes('broken-off')));
  assert.match(line, /"status":499/);
  assert.deepEqual(
    service.log.filter((one) => /"level":[56]0/.test(one)),
    [],
  );
});

test('refuses too many forgeries with 429', async () => {
  let last: Reply | undefined;
  for (let n = 0; n < 120 && last?.status !== 429; n++) last = await tell('x', {}, { signature: 'bad' });
  assert.equal(last?.status, 429);
  assert.ok(Number(last.headers.get('retry-after')) > 0);
  const { gift, sid } = await told('+447700900506');
  answered(await tell(gift, { MessageSid: sid, MessageStatus: 'delivered' }), 'known');
});

test.run();
