/** A person is erased over HTTP: what is left, what goes on, and who comes back. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { suite } from 'uvu';
import type { ImportFaultsError } from '../../../src/import/faults.js';
import { loadConfig } from '../../../src/service/config.js';
import { openStoredEvents } from '../../../src/service/engines.js';
import { eventually } from '../../support/assertions/until.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { erase as erasePerson, SID } from '../../support/service/erasures.js';
import { purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { gift } from '../../support/service/cli.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('erasure under /ops');
let service: Service;
test.before(async () => {
  service = await startService({ catalogue: CATALOGUE, env: { ERASURES_PER_DAY: '40', PERSON_EXPORTS_PER_DAY: '2' } });
  await service.import(SID);
  await service.import(userFile('eve', '07700 900131'));
});
test.after(() => service.close());

const PASSWORD = 'the password of eve and others';
const ANN = (CATALOGUE.users as { readonly id: string }[]).find(({ id }) => id === 'ann') as { readonly id: string };
const MESSAGE = 'Good luck with everything, dear friend';

function userFile(id: string, phone_number: string): object {
  return {
    users: [{ id, username: `${id}@person.example`, password: PASSWORD, name: `Name of ${id}`, phone_number }],
    payment_methods: [{ reference: `pm_${id}`, kind: 'card', users: [id], customer: `cus_${id}` }],
  };
}

const erase = async (person: string): Promise<Reply> => erasePerson(service, person);

const post = async (person: string, step: '' | '/approve' | '/withdraw' = '', user = 'sue'): Promise<Reply> =>
  service.ask('POST', `/ops/people/${person}/erasure${step}`, {
    token: await service.userToken(user),
    body: { reason: 'asked for it' },
  });

const openErasures = async (user = 'sue'): Promise<Json[]> => {
  const reply = await service.ask('GET', '/ops/erasures', { token: await service.userToken(user) });
  assert.equal(reply.status, 200, reply.text);
  return reply.json['data'] as Json[];
};

const login = async (id: string): Promise<Reply> =>
  service.ask('POST', '/oauth/token', {
    token: await service.clientToken(),
    body: {
      grant_type: 'password',
      username: `${id}@person.example`,
      password: PASSWORD,
    },
  });

/** Only a read model that is behind may keep somebody out whom the log knows, and that is no 401. */
const letIn = async (id: string): Promise<string> =>
  eventually(async () => {
    const reply = await login(id);
    if (reply.status === 503) return undefined;
    assert.equal(reply.status, 200, reply.text);
    return reply.json['access_token'] as string;
  });

async function bought(token: string, receivers: readonly object[], reference?: string): Promise<string> {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token,
    body: purchaseOf('latte', receivers, { message: MESSAGE, ...(reference === undefined ? {} : { reference }) }),
  });
  assert.equal(reply.status, 201, reply.text);
  const id = (reply.json['data']['gifts'] as string[])[0] ?? '';
  await eventually(async () => (await shown(id)).data.gift_status === 'sent');
  return id;
}

async function shown(id: string, user = 'ann'): Promise<Json> {
  const reply = await service.ask('GET', `/api/v2/gifts/${service.shortcodeOf(id)}?embed[]=message`, {
    token: await service.userToken(user),
  });
  assert.equal(reply.status, 200, reply.text);
  return reply.json;
}

async function storedText(): Promise<string> {
  const stored = await openStoredEvents(loadConfig(service.settings));
  let text = '';
  for await (const batch of stored.readAll(undefined)) text += JSON.stringify(batch.events);
  await stored.close();
  return text;
}

test('erases a user: no login, no name, no message either way; gifts go on', async () => {
  const token = await letIn('eve');
  const ann = await service.userToken('ann');
  const from = await bought(token, [{ user_id: 'ann' }], 'pm_eve');
  const to = await bought(ann, [{ user_id: 'eve' }]);
  const between = await bought(ann, [{ user_id: 'bob' }]);
  const redeemed = await bought(ann, [{ phone_number: '07700 900131' }]);
  assert.equal((await redeem(service, redeemed)).status, 201);

  for (const step of ['', '/approve', '/withdraw'] as const)
    for (const user of ['ann', 'aud', 'till-coffee']) refused(await post('eve', step, user), 403, 'Forbidden.');
  refused(await erase('nobody'), 404, 'Person not found');
  const reply = await erase('eve');
  assert.equal(reply.status, 200, reply.text);
  const { person, erased_at, complete_at, already } = reply.json['data'] as Record<string, string>;
  assert.deepEqual([person, already], ['eve', false]);
  assert.equal(Date.parse(complete_at ?? '') - Date.parse(erased_at ?? ''), 30 * 86_400_000);

  assert.equal((await login('eve')).status, 401);
  assert.equal((await service.ask('GET', `/api/v2/gifts/${from}`, { token })).status, 401, 'sessions end');
  for (const id of [from, to, redeemed]) assert.equal((await shown(id)).embedded.messages[0].message, '', id);
  assert.equal((await shown(between)).embedded.messages[0].message, MESSAGE, 'of others it stays');
  assert.equal((await shown(redeemed)).data.gift_status, 'redeemed');
  for (const id of [from, to]) assert.equal((await redeem(service, id)).status, 201);

  const kept = await service.ask('GET', '/ops/people/eve?reason=a%20test', { token: await service.userToken('sue') });
  const [account] = kept.json['data']['parts'] as Json[];
  assert.deepEqual([account?.count, typeof kept.json['data']['erased_at']], [0, 'string'], kept.text);
  assert.ok(!kept.text.includes(MESSAGE) && !kept.text.includes('900131') && !kept.text.includes('cus_eve'));

  const again = await erase('eve');
  assert.deepEqual([again.status, again.json['data']['status']], [200, 'erased'], again.text);
  assert.equal(again.json['data']['erased_at'], erased_at);
});

test('takes no user of the same id again, and whoever comes back is somebody new', async () => {
  const file = userFile('eve', '07700 900131');
  await assert.rejects(service.import(file), (error: ImportFaultsError) =>
    /is that of an erased user/.test(error.faults[0]?.fault ?? ''),
  );
  await service.import(userFile('eve2', '07700 900131'));
  await letIn('eve2');
  const gift = await bought(await service.userToken('ann'), [{ phone_number: '07700 900131' }]);
  assert.equal((await shown(gift)).embedded.messages[0].message, MESSAGE);
});

test('erases a number that is no user’s, and refuses one that is', async () => {
  const number = '07700 900177';
  const id = await bought(await service.userToken('ann'), [{ phone_number: number }]);
  const before = await storedText();
  const [, phoneId = ''] = /"phone_id":"([\w-]{22})"/.exec(before.slice(before.lastIndexOf('GiftsPurchased'))) ?? [];
  refused(await erase(`phone:${'A'.repeat(22)}`), 404, 'Person not found');
  refused(await erase('phone:short'), 404, 'Person not found');
  const reply = await erase(`phone:${phoneId}`);
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await shown(id)).embedded.messages[0].message, '');
  assert.equal((await redeem(service, id)).status, 201);
  const text = await storedText();
  assert.ok(!text.includes('900177'));

  const held = await service.ask('GET', `/ops/access?from=${new Date().toISOString().slice(0, 10)}T00:00Z&limit=1000`, {
    token: await service.userToken('aud'),
  });
  assert.ok(held.text.includes('/ops/people/:personId/erasure'), 'who asked stands in the access records');
  await service.import({ users: [{ ...ANN, phone_number: number }] });
  const taken = (await storedText()).match(/"phone-[\w-]{22}"/g)?.at(-1) ?? '';
  refused(
    await erase(`phone:${taken.slice('"phone-'.length, -1)}`),
    409,
    'this number is that of a user: erase the user.',
  );
});

test('refunds and resends gifts of an erased buyer or receiver, and says where nobody can be notified', async () => {
  await service.import(userFile('gus', '07700 900151'));
  const number = '07700 900152';
  const token = await letIn('gus');
  const ann = await service.userToken('ann');
  const fromGus = [
    await bought(token, [{ user_id: 'bob' }], 'pm_gus'),
    await bought(token, [{ user_id: 'bob' }], 'pm_gus'),
  ];
  const toGus = [await bought(ann, [{ user_id: 'gus' }]), await bought(ann, [{ phone_number: '07700 900151' }])];
  const toNumber = await bought(ann, [{ phone_number: number }]);
  const sue = await service.userToken('sue');
  const found = await service.ask('GET', `/ops/people?phone_number=${encodeURIComponent(number)}&reason=a%20test`, {
    token: sue,
  });
  assert.equal((await erase('gus')).status, 200);
  assert.equal((await erase((found.json['data'] as Json[])[0]?.person as string)).status, 200);

  const outcomes = async (id: string): Promise<string[]> =>
    (await service.events.read(`notification-${id}`)).map(({ type }) => type);
  const resend = async (id: string): Promise<string | undefined> => {
    const reply = await service.ask('POST', `/ops/gifts/${id}/resend`, {
      token: sue,
      body: { reason: 'asked for it' },
    });
    assert.equal(reply.status, 200, reply.text);
    const settled = (type: string): boolean => type === 'NotificationSent' || type === 'NotificationFailed';
    return eventually(async () => {
      const [, ...later] = (await outcomes(id)).filter(settled);
      return later.at(-1);
    });
  };
  for (const id of fromGus) assert.equal(await resend(id), 'NotificationSent', 'the receiver is there');
  for (const id of [...toGus, toNumber]) assert.equal(await resend(id), 'NotificationFailed', 'nobody is there');

  for (const id of [...fromGus, ...toGus, toNumber]) {
    const transaction = (await shown(id)).data.transaction_id as string;
    const reply = await service.ask('POST', `/ops/transactions/${transaction}/refund`, {
      token: sue,
      body: { reason: 'asked for it' },
    });
    assert.equal(reply.status, 200, reply.text);
    assert.deepEqual([reply.json['data']['status'], reply.json['data']['gift_ids']], ['refunded', [id]]);
    refused(await redeem(service, id), 405, 'gift is cancelled and cannot be redeemed.');
    const again = await service.ask('POST', `/ops/gifts/${id}/resend`, {
      token: sue,
      body: { reason: 'asked for it' },
    });
    refused(again, 405, 'gift is cancelled and cannot be redeemed.');
    const history = await service.ask('GET', `/ops/gifts/${id}/history?personal=true&reason=a%20test`, {
      token: await service.userToken('aud'),
    });
    assert.equal(history.status, 200, history.text);
  }
});

test('harms nobody else while it waits for money', async () => {
  const number = '07700 900141';
  const reference = 'pm_card_authenticationRequired';
  const [user] = (userFile('fay', number) as { readonly users: readonly object[] }).users;
  await service.import({ users: [user], payment_methods: [{ reference, kind: 'card', users: ['fay'] }] });
  const token = await letIn('fay');
  const body = purchaseOf('latte', [{}], { reference });
  assert.equal((await service.ask('POST', '/api/v2/transactions', { token, body })).status, 402);
  const waits = await erase('fay');
  assert.equal(waits.status, 409, waits.text);
  const [, transaction = ''] = /the payment of transaction (\w+)/.exec(waits.text) ?? [];
  assert.equal((await login('fay')).status, 401);

  const gift = await bought(await service.userToken('ann'), [{ phone_number: number }]);
  await service.import({ users: [{ ...user, id: 'fay2' }] });
  await letIn('fay');

  const declined = { type: 'PaymentDeclined', data: { provider: 'simulated', code: 'no' } };
  const by = { commandId: 'settled', correlationId: 'settled', by: { user: 'system:test' } };
  await service.events.append(
    `transaction-${transaction}`,
    [{ id: randomUUID(), at: new Date().toISOString(), metadata: by, ...declined }],
    'any',
  );
  const reply = await erase('fay');
  assert.equal(reply.status, 200, reply.text);
  assert.equal((await login('fay')).status, 200, 'the username is another user’s by now');
  assert.equal((await shown(gift)).embedded.messages[0].message, MESSAGE, 'and the number, with what was sent to it');
});

const names = async (id: string): Promise<string[]> =>
  (await service.events.read(`user-${id}`)).map(({ type }) => type);

test('waits for another user of support, and can be withdrawn until then', async () => {
  await service.import(userFile('hal', '07700 900161'));
  const first = await post('hal');
  assert.equal(first.status, 202, first.text);
  const { id, status, requested_by, requested_at, due_at } = first.json['data'] as Record<string, string>;
  assert.deepEqual([status, requested_by], ['requested', 'sue']);
  assert.equal(Date.parse(due_at ?? '') - Date.parse(requested_at ?? ''), 3 * 86_400_000);
  for (const again of [await post('hal'), await post('hal', '', 'sid')]) {
    assert.equal(again.status, 202, again.text);
    assert.deepEqual(again.json['data'], first.json['data'], 'the same request');
  }
  refused(await post('hal', '/approve'), 403, 'this takes another user of support.');
  for (const user of ['sue', 'aud']) assert.deepEqual(await openErasures(user), [first.json['data']]);
  await letIn('hal');

  const withdrawn = await post('hal', '/withdraw', 'sid');
  assert.deepEqual([withdrawn.status, withdrawn.json['data'].status], [200, 'withdrawn'], withdrawn.text);
  assert.deepEqual(await openErasures(), []);
  for (const step of ['/approve', '/withdraw'] as const)
    refused(await post('hal', step, 'sid'), 404, 'Erasure not found');
  assert.deepEqual(await names('hal'), ['UserAdded', 'ErasureRequested', 'ErasureWithdrawn']);

  const second = await post('hal', '', 'sid');
  assert.notEqual(second.json['data'].id, id);
  const approved = await post('hal', '/approve');
  assert.equal(approved.status, 200, approved.text);
  refused(await post('hal', '/withdraw'), 404, 'Erasure not found');
  const done = await post('hal');
  assert.deepEqual([done.status, done.json['data'].status], [200, 'erased'], done.text);
  const kept = await service.ask('GET', '/ops/people/hal/export?reason=a%20test', {
    token: await service.userToken('sue'),
  });
  const erasures = (kept.json['data'].parts as Json[]).find(({ part }) => part === 'erasures');
  assert.deepEqual(
    ((erasures?.records ?? []) as Json[]).map(({ event, by }) => [event, by.user]),
    [
      ['ErasureRequested', 'sue'],
      ['ErasureWithdrawn', 'sid'],
      ['ErasureRequested', 'sid'],
      ['ErasureStarted', 'sue'],
      ['PersonErased', 'sue'],
    ],
  );
});

test('refuses staff and users of merchants until an import has retired them, and oneself', async () => {
  const STAFF = 'staff and users of merchants are erased once an import has retired them.';
  for (const person of ['aud', 'sid', 'till-coffee', 'till-nothing']) refused(await post(person), 409, STAFF);
  refused(await post('sue'), 403, 'this takes another user of support.');
  for (const person of ['sid', 'till-coffee']) {
    const { code, err } = await gift(service.settings, ['people', 'erase', person, '--yes', '--reason', 'a test']);
    assert.equal(code, 1);
    assert.match(err, /are erased once an import has retired them: .*gift import/);
  }
  const till = (CATALOGUE.users as { readonly id: string }[]).find(({ id }) => id === 'till-coffee');
  await service.import({ users: [{ ...till, active: false }] });
  assert.equal((await erase('till-coffee')).status, 200);
  // Who becomes staff while a request waits is not erased by it.
  const [user] = (userFile('ivy', '07700 900162') as { readonly users: readonly object[] }).users;
  await service.import({ users: [user] });
  assert.equal((await post('ivy')).status, 202);
  await service.import({ users: [{ ...user, roles: ['auditor'] }] });
  refused(await post('ivy', '/approve', 'sid'), 409, STAFF);
  assert.deepEqual(
    (await openErasures()).map(({ person, status }) => [person, status]),
    [['ivy', 'requested']],
  );
  const { out, err } = await gift(service.settings, ['people', 'withdraw-erasure', 'ivy', '--reason', 'staff now']);
  assert.match(out, /^erasure [\w-]{22} is withdrawn\n$/, err);
  assert.deepEqual(await openErasures(), []);
});

test('counts exports and erasures of each user of support for a day', async () => {
  const token = await service.userToken('sid');
  const exported = async (): Promise<Reply> => service.ask('GET', '/ops/people/ann/export?reason=a%20test', { token });
  assert.deepEqual([(await exported()).status, (await exported()).status], [200, 200]);
  const refusal = await exported();
  refused(refusal, 429, 'Too many requests.');
  const wait = Number(refusal.headers.get('retry-after'));
  assert.ok(wait > 86_000 && wait <= 86_400, String(wait));
  const shown = await service.ask('GET', '/ops/people/ann?reason=a%20test', { token });
  assert.equal(shown.status, 200, 'another limit');

  const path = '/ops/people/nobody/erasure';
  let last: Reply | undefined;
  for (let n = 0; n <= 40 && last?.status !== 429; n++)
    last = await service.ask('POST', path, { token, body: { reason: 'a test' } });
  refused(last as Reply, 429, 'Too many requests.');
  const { text } = await service.ask('GET', '/metrics');
  for (const name of ['person-exports', 'erasures'])
    assert.match(text, new RegExp(`^gift_limited_requests_total\\{limit="${name}"\\} 1$`, 'm'));
});

test.run();
