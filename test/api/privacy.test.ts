/**
 * What is secret or personal shows nowhere but where it must: gathered from the log by the classes of its events'
 * fields, and looked for in every answer to every caller, in every log line and in what is stored beside the log.
 */
import assert from 'node:assert/strict';
import { hashSync } from '@node-rs/argon2';
import { suite } from 'uvu';
import { FIELD_CLASSES, type FieldClasses } from '../../src/domain/fieldClasses.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { answerOf, checked } from '../support/service/answers.js';
import { purchaseOf } from '../support/service/giftFlow.js';
import { type Json, type Reply, type Service, request, startService } from '../support/service/service.js';
import { eventually } from '../support/assertions/until.js';
import { operationsOf, relationsOf } from './openapi/check.js';

const test = suite('privacy');
let service: Service;

const hashed = (secret: string): string => hashSync(secret, { memoryCost: 4_096, timeCost: 3, parallelism: 1 });
const PHONES = {
  mia: '+447700900211',
  olivia: '+447700900212',
  nobody: '+447700900213',
  failing: '+15005550001',
  moved: '+447700900214',
};
const person = (id: string, more: object = {}): object => ({
  id,
  username: `${id}@test.example`,
  password_hash: hashed(`${id}-password`),
  name: `${id} Personal-Name`,
  ...more,
});
const KEYS = {
  TOKEN_KEY: 'token-key-of-the-privacy-test-0123456789',
  HASH_KEY: 'hash-key-of-the-privacy-test-0123456789',
  MASTER_KEY: 'master-key-of-the-privacy-test-0123456789',
  SEAL_KEY: 'seal-key-of-the-privacy-test-0123456789',
};

const CATALOGUE = {
  integrations: [{ id: '1', name: 'Till' }],
  merchants: [
    { id: 'm-a', name: 'A', adjustment_codes: ['A1'] },
    { id: 'm-b', name: 'B', adjustment_codes: ['B1'] },
  ],
  brands: [
    { id: 'b-a', name: 'Brand A', merchant_id: 'm-a', integration_id: '1' },
    { id: 'b-b', name: 'Brand B', merchant_id: 'm-b', integration_id: '1' },
    { id: 'b-hidden', name: 'Hidden', merchant_id: 'm-b', visible_to: ['olivia'] },
  ],
  stores: [
    { id: 's-a', brand_id: 'b-a', name: 'Store A', longitude: -0.1, latitude: 51.5 },
    { id: 's-b', brand_id: 'b-b', name: 'Store B', longitude: -0.2, latitude: 51.6 },
  ],
  segments: [
    { id: 'g-pin', name: 'Pins', voucherType: 'alpha/pin', expiry: 30 },
    { id: 'g-qr', name: 'Codes', voucherType: 'qr', expiry: 30 },
  ],
  products: [
    { id: 'p-pin', brand_id: 'b-a', name: 'With a pin', sale_price: 100, segments: ['g-pin'] },
    { id: 'p-qr', brand_id: 'b-a', name: 'With a code', sale_price: 100, segments: ['g-qr'] },
    { id: 'p-hidden', brand_id: 'b-hidden', name: 'Hidden product', sale_price: 100 },
  ],
  categories: [{ id: 'c', name: 'All', products: ['p-pin', 'p-qr', 'p-hidden'] }],
  users: [
    person('olivia', { phone_number: PHONES.olivia, device_tokens: ['device-token-of-olivia'] }),
    person('noah', { device_tokens: ['device-token-of-noah'] }),
    person('mia', { phone_number: PHONES.mia, device_tokens: ['device-token-of-mia'] }),
    person('zed'),
    person('till-a', { merchant_id: 'm-a', permissions: ['redeem', 'unredeem'] }),
    person('till-b', { merchant_id: 'm-b', permissions: ['redeem', 'unredeem'] }),
    person('till-mute', { merchant_id: 'm-a', permissions: [] }),
    person('hooks-a', { merchant_id: 'm-a', permissions: ['webhooks'] }),
    person('hooks-b', { merchant_id: 'm-b', permissions: ['webhooks'] }),
    person('helper', { roles: ['support'] }),
    person('checker', { roles: ['auditor'] }),
  ],
  clients: [
    { id: 'privacy-client', secret_hash: hashed('privacy-client-secret'), name: 'App' },
    { id: 'privacy-other', secret_hash: hashed('privacy-other-secret'), name: 'Other app' },
  ],
  payment_methods: [
    { reference: 'pm_card_visa', kind: 'card', users: ['olivia', 'noah'], customer: 'cus_of_olivia_and_noah' },
    { reference: 'pm_card_flaky', kind: 'card', users: ['olivia'], customer: 'cus_flaky_olivia' },
    { reference: 'pm_card_visa_chargeDeclined', kind: 'card', users: ['olivia'] },
  ],
  voucher_codes: Array.from({ length: 12 }, (_, index) => ({
    segment_id: 'g-pin',
    code: `POOLCODE${index}X`,
    pin: `POOLPIN${index}X`,
  })),
};
const CLIENT = 'privacy-client';
const STAFF = ['helper', 'checker'];
const USERS = ['olivia', 'noah', 'mia', 'zed', 'till-a', 'till-b', 'till-mute', ...STAFF];

/** A gift, and who may see what of it. */
interface Known {
  readonly id: string;
  readonly message: string;
  readonly sender: string;
  /** `undefined`: nobody has the number it was sent to. */
  readonly owner: string | undefined;
  /** Whose id each caller is shown; others see `""`. */
  readonly receiver: Readonly<Record<string, string>>;
}
const gifts: Known[] = [];
const transactions: string[] = [];
/** A gift to mia that is to be sent next year. */
let later = '';
const buyerOf = new Map<string, string>();

interface Heard {
  /** A user, `client`, `other-client`, or `nobody`. */
  readonly caller: string;
  readonly requested: string;
  readonly reply: Reply;
}
const heard: Heard[] = [];
/** What callers sent or got that must not be seen elsewhere. */
const credentials = new Set<string>();

async function hear(caller: string, method: string, path: string, body?: unknown, key?: string): Promise<Reply> {
  const token =
    caller === 'nobody'
      ? undefined
      : caller.endsWith('client')
        ? await service.clientToken(caller === 'client' ? CLIENT : 'privacy-other')
        : await service.userToken(caller, CLIENT);
  if (token !== undefined) credentials.add(token);
  const reply = await service.ask(method, path, {
    ...(token === undefined ? {} : { token }),
    ...(body === undefined ? {} : { body }),
    ...(key === undefined ? {} : { key }),
  });
  checked(answerOf(reply), `${caller} ${method} ${path}`);
  heard.push({ caller, requested: `${method} ${path}`, reply });
  return reply;
}

async function bought(
  sender: string,
  product: string,
  message: string,
  receivers: readonly object[],
  reference = 'pm_card_visa',
  sendAt?: string,
): Promise<string[]> {
  const reply = await hear(
    sender,
    'POST',
    '/api/v2/transactions',
    purchaseOf(product, receivers, { message, reference, ...(sendAt === undefined ? {} : { sendAt }) }),
    `privacy-key-${message.slice(-9)}`,
  );
  assert.equal(reply.status, 201, reply.text);
  transactions.push(reply.json.data.id as string);
  buyerOf.set(reply.json.data.id as string, sender);
  return reply.json.data.gifts as string[];
}

const mayRedeem = (gift: Known): ReadonlySet<string> =>
  new Set(['till-a', ...(gift.owner === undefined ? [] : [gift.owner])]);
const mayRead = (gift: Known): ReadonlySet<string> =>
  new Set(gift.owner === undefined ? USERS.filter((user) => !STAFF.includes(user)) : [gift.sender, gift.owner]);

test.before(async () => {
  service = await startService({
    catalogue: CATALOGUE,
    split: false,
    env: { ...KEYS, SANDBOX: '1', SEAL_EVERY_MS: '100', LOG_LEVEL: 'trace' },
  });
  const [named = '', phoned = '', nobodys = '', shared = '', own = ''] = await bought(
    'olivia',
    'p-pin',
    'Wish-for-many-1',
    [
      { user_id: 'mia' },
      { phone_number: PHONES.mia },
      { phone_number: PHONES.nobody },
      {},
      { phone_number: PHONES.olivia },
    ],
  );
  const [claimed = ''] = await bought('noah', 'p-qr', 'Wish-claimed-22', [{}]);
  const [hidden = ''] = await bought('noah', 'p-qr', 'Wish-hidden-333', [{}], 'pm_card_visa');
  await replacedGift();
  await movedGift();
  [later = ''] = await bought('noah', 'p-pin', 'Wish-later-77777', [{ user_id: 'mia' }], 'pm_card_visa', NEXT_YEAR);
  gifts.push({
    id: later,
    message: 'Wish-later-77777',
    sender: 'noah',
    owner: 'mia',
    receiver: { mia: 'mia', noah: 'mia' },
  });
  const [flaky = ''] = await bought(
    'olivia',
    'p-qr',
    'Wish-flaky-4444',
    [{ phone_number: PHONES.failing }],
    'pm_card_flaky',
  );
  assert.equal((await hear('mia', 'POST', `/api/v2/gifts/${service.shortcodeOf(claimed)}/claim`)).status, 200);
  gifts.push(
    { id: named, message: 'Wish-for-many-1', sender: 'olivia', owner: 'mia', receiver: { olivia: 'mia', mia: 'mia' } },
    { id: phoned, message: 'Wish-for-many-1', sender: 'olivia', owner: 'mia', receiver: { mia: 'mia' } },
    { id: nobodys, message: 'Wish-for-many-1', sender: 'olivia', owner: undefined, receiver: {} },
    { id: shared, message: 'Wish-for-many-1', sender: 'olivia', owner: 'olivia', receiver: {} },
    { id: own, message: 'Wish-for-many-1', sender: 'olivia', owner: 'olivia', receiver: { olivia: 'olivia' } },
    { id: claimed, message: 'Wish-claimed-22', sender: 'noah', owner: 'mia', receiver: { mia: 'mia' } },
    { id: hidden, message: 'Wish-hidden-333', sender: 'noah', owner: 'noah', receiver: {} },
    { id: flaky, message: 'Wish-flaky-4444', sender: 'olivia', owner: undefined, receiver: {} },
  );
  const declined = await hear(
    'olivia',
    'POST',
    '/api/v2/transactions',
    purchaseOf('p-qr', [{ user_id: 'zed' }], { message: 'Wish-declined-5', reference: 'pm_card_visa_chargeDeclined' }),
  );
  assert.equal(declined.status, 402);
  for (const [index, gift] of gifts.entries()) {
    assert.equal(
      (
        await hear(
          'till-a',
          'POST',
          `/api/v2/gifts/${gift.id}/voucher${index % 2 === 0 ? '/claimed' : ''}`,
          undefined,
          `privacy-key-voucher-${index}`,
        )
      ).status,
      200,
    );
  }
  assert.equal(
    (await hear('till-a', 'POST', `/api/v2/gifts/${named}/redemptions`, { location_id: 's-a' })).status,
    201,
  );
  assert.equal((await hear('mia', 'POST', `/api/v2/gifts/${claimed}/redemptions`, { location_id: 's-a' })).status, 201);
  await eventually(async () => (await hear('checker', 'GET', '/checkpoint')).status === 200);
  await everyoneAsksEverything();
  await badRequests();
  await everyOwnersWebhooks();
  await supportReadsTheLog();
  await eventually(async () => service.log.some((line) => line.includes('simulated notification failed')));
});
test.after(() => service.close());

/** A gift in whose place support gives another one. */
let lost: string;

async function replacedGift(): Promise<void> {
  const voucherOf = async (id: string): Promise<void> => {
    const { status, text } = await hear('till-a', 'POST', `/api/v2/gifts/${id}/voucher`);
    assert.equal(status, 200, text);
    gifts.push({ id, message: 'Wish-lost-99999', sender: 'noah', owner: undefined, receiver: {} });
  };
  [lost = ''] = await bought('noah', 'p-qr', 'Wish-lost-99999', [{ phone_number: PHONES.nobody }]);
  await voucherOf(lost);
  const { json } = await hear('helper', 'POST', `/ops/gifts/${lost}/replace`, { reason: 'ticket 1', voided: true });
  const next = json['data'].replaced_by as string;
  const { transaction_id } = json['data'].events[0].data.replaced_by as { transaction_id: string };
  transactions.push(transaction_id);
  buyerOf.set(transaction_id, 'noah');
  await eventually(async () => (await service.events.read(`gift-${next}`)).length > 0);
  await voucherOf(next);
}

/** Support gives a gift to another number, which stands in the log alone. */
async function movedGift(): Promise<void> {
  const [moved = ''] = await bought('noah', 'p-qr', 'Wish-moved-8888', [{ phone_number: PHONES.nobody }]);
  await eventually(async () => (await service.events.read(`notification-${moved}`)).length === 2);
  assert.equal(
    (
      await hear(
        'helper',
        'POST',
        `/ops/gifts/${moved}/reassign`,
        { phone_number: PHONES.moved, reason: 'typing error' },
        'privacy-key-moved',
      )
    ).status,
    200,
  );
  await eventually(async () => (await service.events.read(`notification-${moved}`)).length === 4);
  gifts.push({ id: moved, message: 'Wish-moved-8888', sender: 'noah', owner: undefined, receiver: {} });
  assert.equal(
    (await hear('till-a', 'POST', `/api/v2/gifts/${moved}/redemptions`, { location_id: 's-a' })).status,
    201,
  );
  for (const [what, body] of [
    ['unredeem', {}],
    ['resend', {}],
    ['block', { ticket: 'T-1' }],
    ['unblock', { ticket: 'T-1' }],
    ['extend', { expiry_date: '2031-01-01' }],
  ] as const) {
    await hear('helper', 'POST', `/ops/gifts/${moved}/${what}`, { reason: 'ticket 1', ...body });
  }
  await hear('helper', 'POST', '/ops/actions', { action: 'unblock', items: [{ id: moved }], reason: 'ticket 1' });
}

/** What every caller asks for where a query wants it. */
const REQUESTED: Readonly<Record<string, () => string>> = {
  time: () => new Date().toISOString(),
  day: () => new Date().toISOString().slice(0, 10),
};

/** The query of an operation: what it wants, and every relation. */
function queryOf(document: object, operation: Json): string {
  const wanted = (operation['parameters'] as readonly { name: string; in: string; required?: boolean }[]).filter(
    (one) => one.in === 'query' && one.required === true,
  );
  const words = wanted.map(({ name }) => `${name}=${encodeURIComponent(REQUESTED[name]?.() ?? '')}`);
  const all = [...words, ...relationsOf(document, operation).map((one) => `embed[]=${one}`)];
  return all.length === 0 ? '' : `?${all.join('&')}`;
}

const RESCHEDULED = '/api/v2/transactions/{transactionId}';
const NEXT_YEAR = new Date(Date.now() + 300 * 86_400_000).toISOString();

/** Every caller asks every operation of the description about every gift and purchase, with every relation. */
async function everyoneAsksEverything(): Promise<void> {
  const { json } = await hear('nobody', 'GET', '/openapi.json');
  for (const path of ['/readyz', '/healthz', '/docs', '/nothing']) await hear('nobody', 'GET', path);
  const bodies: Readonly<Record<string, object>> = {
    redemptions: { location_id: 'nowhere' },
    latest: { redeemed: true },
    voucher: { embed: ['voucher.segment'] },
    claimed: {},
    clock: { advance: 1 },
    'payment-methods': { reference: 'pm_card_mastercard' },
    rebuild: { reason: 'a test' },
  };
  for (const { method, path, operation } of operationsOf(json as object)) {
    if (path === '/oauth/token' || (method === 'POST' && path === '/api/v2/transactions')) continue;
    const query = queryOf(json as object, operation);
    const filled = path
      .replace('{redemptionId}', 'latest')
      .replace('{key}', 'till-1')
      .replace('{name}', method === 'GET' ? 'gifts' : 'nothing')
      .replace('{tiles}', '-0.5,51.7:0.5,51.3')
      .replace('{id}', path.includes('categories') ? 'c' : 'p-pin')
      .replace('{level}', '0')
      .replace('{n1}/{n2}', '000.p/1');
    const targets = filled.includes('{giftId}')
      ? gifts.map(({ id }) => filled.replace('{giftId}', service.shortcodeOf(id)))
      : filled.includes('{transactionId}')
        ? transactions.map((id) => filled.replace('{transactionId}', id))
        : [filled];
    for (const target of targets) {
      // Gifts that are still to be had must not change hands.
      if (
        target.endsWith('/claim') &&
        gifts.some(
          ({ id, receiver, owner, sender }) =>
            target.includes(service.shortcodeOf(id)) && owner === sender && receiver[owner] === undefined,
        )
      )
        continue;
      const body =
        method === 'GET' || target.endsWith('/claim')
          ? undefined
          : path === RESCHEDULED
            ? { send_at: NEXT_YEAR }
            : bodies[target.split('/').at(-1) ?? ''];
      const callers = [...USERS, ...(path === '/sandbox/reset' ? [] : ['client']), 'nobody'];
      await Promise.all(callers.map((caller) => hear(caller, method, target + query, body)));
    }
  }
}

interface Hooked {
  readonly id: string;
  readonly owner: string;
  readonly secrets: readonly string[];
}
const hooked: Hooked[] = [];
const HOOKS = '/api/v2/webhook-endpoints';
const OWNERS = ['client', 'other-client', 'hooks-a', 'hooks-b'];

/** Every owner makes an endpoint, and every caller tries everything on each; its owner is last. */
async function everyOwnersWebhooks(): Promise<void> {
  for (const owner of OWNERS) {
    const made = await hear(owner, 'POST', HOOKS, { url: `https://${owner}.example/` }, `privacy-key-hooks-${owner}`);
    assert.equal(made.status, 201, made.text);
    const { id, secret } = made.json.data;
    const rotated = await hear(owner, 'POST', `${HOOKS}/${id}/secret`);
    hooked.push({ id, owner, secrets: [secret, rotated.json.data.secret] });
  }
  const known = await service.ask('GET', '/api/v2/events?types[]=transaction.created', {
    token: await service.clientToken(CLIENT),
  });
  const [{ id: event_id, position }] = known.json.data;
  for (const { id, owner } of hooked)
    for (const caller of [...OWNERS.filter((one) => one !== owner), 'till-a', 'olivia', 'helper', 'nobody', owner]) {
      await hear(caller, 'GET', HOOKS);
      const path = `${HOOKS}/${id}`;
      await hear(caller, 'GET', path);
      await hear(caller, 'GET', `${path}/attempts`);
      await hear(caller, 'PATCH', path, { description: 'changed' });
      await hear(caller, 'POST', `${path}/ping`);
      await hear(caller, 'POST', `${path}/recover`, { since: '2026-05-04T12:30:00Z' });
      await hear(caller, 'POST', `${path}/resend`, { event_id, position });
      if (caller !== owner) await hear(caller, 'POST', `${path}/secret`);
      await hear(caller, 'DELETE', path);
    }
}

/** Support reads the whole log. */
async function supportReadsTheLog(): Promise<void> {
  for (let after = '', ended = false; !ended;) {
    const { json } = await hear('helper', 'GET', `/ops/log?limit=1000&after=${after}`);
    ({ next: after, end: ended } = json as { next: string; end: boolean });
  }
}

/** Requests that go wrong in ways that might make something be told. */
async function badRequests(): Promise<void> {
  const [gift] = gifts;
  const { id = '' } = gift ?? {};
  for (const path of [
    `/api/v2/gifts/${id}/nothing`,
    `/nothing/${service.shortcodeOf(id)}`,
    `/nothing/${service.shortcodeOf(id).toLowerCase()}/%41?gift=${id}`,
    `/%${id}`,
    `/x${id}`,
    `/call/${PHONES.mia}`,
    `/g/${id}/${service.shortcodeOf(id)}`,
  ])
    await hear('zed', 'GET', path);
  await hear('zed', 'POST', `/api/v2/gifts/${id}/redemptions`, { location_id: 's-a', message: gift?.message });
  await hear(
    'olivia',
    'POST',
    '/api/v2/transactions',
    purchaseOf('p-pin', [{ phone_number: '+44 12' }], { message: 'Wish-refused-66' }),
  );
  await hear(
    'olivia',
    'POST',
    '/api/v2/transactions',
    purchaseOf('p-pin', [{ phone_number: PHONES.mia, user_id: 'mia' }], { message: 'Wish-refused-66' }),
  );
  await hear(
    'olivia',
    'POST',
    '/api/v2/transactions',
    purchaseOf('p-pin', [{ user_id: `mia@test.example` }], { message: 'Wish-refused-66' }),
  );
  await hear(
    'olivia',
    'POST',
    '/api/v2/transactions',
    `{"payment":{"method":"card","reference":"pm_card_visa"},"purchase":{"type":"gift","reference":"p-pin","message":"Wish-broken-777"`,
  );
  const client = await service.clientToken(CLIENT);
  const login = await service.ask('POST', '/oauth/token', {
    token: client,
    body: { grant_type: 'password', username: 'mia@test.example', password: 'mia-password' },
  });
  const refreshed = await service.ask('POST', '/oauth/token', {
    body: {
      grant_type: 'refresh_token',
      refresh_token: login.json.refresh_token,
      client_id: CLIENT,
      client_secret: 'privacy-client-secret',
    },
  });
  const revoked = await service.ask('POST', '/oauth/revoke', {
    body: { token: refreshed.json.refresh_token, client_id: CLIENT, client_secret: 'privacy-client-secret' },
  });
  heard.push({ caller: 'client', requested: 'POST /oauth/revoke', reply: revoked });
  for (const { json } of [login, refreshed])
    for (const one of [json.access_token, json.refresh_token]) credentials.add(one as string);
  for (const [username, password] of [
    ['mia@test.example', 'guessed-password'],
    ['nobody-at-all@test.example', 'guessed-password'],
  ]) {
    const reply = await service.ask('POST', '/oauth/token', {
      token: client,
      body: { grant_type: 'password', username, password },
    });
    heard.push({ caller: 'client', requested: 'login', reply });
  }
  for (const word of [
    'guessed-password',
    'nobody-at-all@test.example',
    'privacy-client-secret',
    ...USERS.map((user) => `${user}-password`),
    ...Object.values(KEYS),
  ])
    credentials.add(word);
}

/** Values at a path of an event's data: `receivers[].phone_number`. */
function valuesAt(data: unknown, path: string): string[] {
  let values: unknown[] = [data];
  for (const step of path.split('.')) {
    const name = step.replace('[]', '');
    values = values.flatMap((value) => {
      const inner = (value as Record<string, unknown> | null | undefined)?.[name];
      return step.endsWith('[]') ? ((inner ?? []) as unknown[]) : [inner];
    });
  }
  return values.filter((value): value is string => typeof value === 'string' && value !== '');
}

async function wholeLog(): Promise<RecordedEvent[]> {
  const events: RecordedEvent[] = [];
  for await (const batch of service.events.readAll(undefined, {})) events.push(...batch.events);
  return events;
}

/** Every classified value in the log, with the event and the path it stands at. */
async function classified(): Promise<
  { readonly event: RecordedEvent; readonly path: string; readonly value: string }[]
> {
  return (await wholeLog()).flatMap((event) => {
    const { secret, personal } = (FIELD_CLASSES as Readonly<Record<string, FieldClasses>>)[event.type] ?? {
      secret: [],
      personal: [],
    };
    return [...secret, ...personal].flatMap((path) =>
      valuesAt(event.data, path).map((value) => ({ event, path, value })),
    );
  });
}

/** Every text in a JSON value, keys too. */
function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([key, inner]) => [key, ...textsIn(inner)]);
}

/** Whether a text shows a value: a short one only where it is the whole text. */
const shows = (text: string, value: string): boolean => (value.length < 6 ? text === value : text.includes(value));

const texts = new Map<Reply, readonly string[]>();

/** All texts of an answer, those of its headers too: each answer is looked through for hundreds of values. */
function textsOf(reply: Reply): readonly string[] {
  const known = texts.get(reply) ?? [
    ...(reply.json === undefined ? [reply.text] : textsIn(reply.json)),
    ...reply.headers.values(),
  ];
  texts.set(reply, known);
  return known;
}

/** Looks for a value in an answer. */
function showsIn({ reply }: Heard, value: string): boolean {
  return textsOf(reply).some((text) => shows(text, value));
}

/** Events with the same fields as others, which are handled alike. */
const LIKE_OTHERS: ReadonlySet<string> = new Set([
  'UserChanged',
  'ClientChanged',
  'PaymentMethodChanged',
  'VoucherCodeChanged',
]);

test('the scenario holds something of every class', async () => {
  const found = new Set((await classified()).map(({ event, path }) => `${event.type} ${path}`));
  const all = Object.entries<FieldClasses>(FIELD_CLASSES).flatMap(([type, { secret, personal }]) =>
    LIKE_OTHERS.has(type) ? [] : [...secret, ...personal].map((path) => `${type} ${path}`),
  );
  assert.ok(all.length > 10);
  assert.deepEqual(
    all.filter((one) => !found.has(one)),
    [],
    'let somebody do what leads to it in `test.before`',
  );
  assert.ok(heard.length > 1_000, String(heard.length));
  assert.ok(heard.filter(({ reply }) => reply.status === 200).length > 300);
});

/**
 * What nobody is answered here: what takes the scenario apart, and looks at tasks and parked work, of which it has
 * none.
 */
const UNANSWERED: ReadonlySet<string> = new Set([
  'PATCH /api/v2/gifts/{giftId}/redemptions/{redemptionId}',
  'POST /ops/transactions/{transactionId}/refund',
  'GET /ops/parked/{parkedId}',
  'POST /ops/parked/{parkedId}/retry',
  'POST /ops/parked/{parkedId}/discard',
  'POST /ops/parked/groups/{groupId}/retry',
  'POST /ops/parked/groups/{groupId}/discard',
  ...['rebuild', 'abort', 'rollback', 'verification', 'repair'].map((what) => `POST /ops/projections/{name}/${what}`),
  ...['GET attempts', 'POST resend', 'POST recover'].map((one) => one.replace(' ', ' /ops/webhooks/{endpointId}/')),
  'GET /ops/projections/{name}/verification',
  'GET /ops/projections/{name}/repair',
  // For support, with a reason: they are asked for personal data alone (`test/api/ops/people.test.ts`).
  // They need a cookie of the console, and show the caller alone (`test/api/console/session.test.ts`).
  ...['start', 'refresh'].map((step) => `POST /console/session/${step}`),
  // Tiles of larger logs; these are of one kind (`test/api/evidence/evidence.test.ts`).
  ...['', '/{n2}/{n3}', '/{n2}/{n3}/{n4}'].flatMap((steps) =>
    ['{level}', 'entries'].map((kind) => `GET /tile/${kind}/{n1}${steps}`),
  ),
  // It would end what is looked at (`test/api/sandbox/reset.test.ts`); its answer holds the log's id alone.
  'POST /sandbox/reset',
  // No purchase waits for its buyer here.
  'POST /sandbox/transactions/{transactionId}/authentication',
  'GET /ops/people',
  'GET /ops/gifts',
  'GET /ops/people/{personId}',
  'GET /ops/people/{personId}/export',
  ...['', '/approve', '/withdraw'].map((step) => `POST /ops/people/{personId}/erasure${step}`),
]);

test('every operation was answered to somebody', () => {
  const { json } = heard.find(({ requested }) => requested === 'GET /openapi.json')?.reply ?? {};
  const operations = operationsOf(json as object).map(({ method, path }) => `${method} ${path}`);
  const silent = operations.filter((one) => {
    const pattern = new RegExp(`^${one.replaceAll(/\{\w+\}/g, '[^/?]+')}(\\?|$)`);
    // A literal step wins over another operation's parameter.
    const isOther = (requested: string): boolean =>
      one.includes('{') && operations.includes(requested.split('?')[0] ?? '');
    return !heard.some(({ requested, reply }) => reply.status < 400 && pattern.test(requested) && !isOther(requested));
  });
  assert.deepEqual(
    silent.toSorted(),
    [...UNANSWERED, 'POST /oauth/token'].toSorted(),
    'give what it wants in `ASKED` or `bodies`, or name it in UNANSWERED',
  );
});

/** Whether it is a call of support or an auditor under /ops. */
const isByStaff = ({ caller, requested }: Pick<Heard, 'caller' | 'requested'>): boolean =>
  STAFF.includes(caller) && requested.includes(' /ops/');

const OWN_ACCOUNT = 'GET /api/v2/me';

/** A name, username or number that the caller is shown as their own. */
function isOwn({ caller, requested }: Heard, value: string): boolean {
  const own = [
    `${caller}@test.example`,
    `${caller} Personal-Name`,
    (PHONES as Readonly<Record<string, string>>)[caller],
  ];
  return requested === OWN_ACCOUNT && own.some((text) => text?.includes(value) === true);
}

test('shows no hashes, seeds, names, usernames, numbers, devices or customers in any answer', async () => {
  const elsewhere = new Set(['message', 'code', 'pin']);
  const values = new Set((await classified()).filter(({ path }) => !elsewhere.has(path)).map(({ value }) => value));
  for (const phone of Object.values(PHONES))
    for (const spelling of [phone, phone.replace('+44', '0'), phone.slice(1)]) values.add(spelling);
  for (const one of heard)
    for (const value of values)
      if (showsIn(one, value)) assert.ok(isOwn(one, value), `${one.caller} ${one.requested} shows ${value}`);
  for (const user of USERS)
    assert.equal(heard.filter(({ caller, requested }) => caller === user && requested === OWN_ACCOUNT).length, 1, user);
});

test('no answer shows a credential but to who asked for it', () => {
  for (const one of heard)
    for (const value of credentials)
      assert.ok(!showsIn(one, value), `${one.caller} ${one.requested} shows ${value.slice(0, 20)}`);
});

test('messages are shown only to sender, owner, and all while the gift has no owner', () => {
  let seen = 0;
  for (const one of heard) {
    for (const message of textsIn(one.reply.json).filter((text) => text.startsWith('Wish-'))) {
      seen += 1;
      const about = (textsIn(one.reply.json).includes('messages') ? one.reply.json.embedded.messages : []) as Json[];
      const shown = about.filter((entity) => entity.message === message);
      assert.ok(shown.length > 0, `${one.caller} ${one.requested} shows ${message} outside of a message`);
      for (const entity of shown) {
        const gift = gifts.find(({ id }) => id === entity.gift_id);
        assert.ok(
          gift !== undefined && gift.message === message && mayRead(gift).has(one.caller),
          `${one.caller} ${one.requested} shows ${message}`,
        );
      }
    }
    if (one.reply.json === undefined) assert.doesNotMatch(one.reply.text, /Wish-/);
  }
  assert.ok(seen > 20);
  for (const gift of gifts) {
    const readers = new Set(
      heard
        .filter(
          ({ requested, reply }) =>
            requested.startsWith(`GET /api/v2/gifts/${service.shortcodeOf(gift.id)}?`) &&
            reply.json.embedded?.messages.length === 1,
        )
        .map(({ caller }) => caller),
    );
    assert.deepEqual(readers, mayRead(gift));
  }
});

test('an answer for one user may not be cached, on the way or on their own device', async () => {
  const [gift] = gifts;
  const again = await service.ask('POST', `/api/v2/gifts/${gift?.id}/voucher/claimed`, {
    token: await service.userToken('till-a', CLIENT),
    key: 'privacy-key-voucher-0',
  });
  assert.deepEqual(
    [again.status, again.headers.get('idempotent-replayed'), again.headers.get('cache-control')],
    [200, 'true', 'no-store'],
  );
  const answers = heard.filter(
    ({ requested }) =>
      /^\w+ \/(?:api\/v2\/(?:gifts|me|payment-methods|transactions)|ops)\b/.test(requested) &&
      !requested.includes('/nothing'),
  );
  for (const status of [200, 201, 401, 402, 403, 404, 405, 422])
    assert.ok(
      answers.some(({ reply }) => reply.status === status),
      String(status),
    );
  for (const { caller, requested, reply } of answers)
    assert.equal(reply.headers.get('cache-control'), 'no-store', `${caller} ${requested} ${reply.status}`);
});

test('codes and pins are shown to who may redeem that very gift; to others never', async () => {
  const assigned = (await classified()).filter(
    ({ event, path }) => event.type === 'VoucherAssigned' && (path === 'code' || path === 'pin'),
  );
  const pool = (await classified()).filter(({ event }) => event.type === 'VoucherCodeAdded').map(({ value }) => value);
  const given = new Set(assigned.map(({ value }) => value));
  for (const one of heard) {
    for (const { event, path, value } of assigned) {
      if (!showsIn(one, value)) continue;
      const gift = gifts.find(({ id }) => event.stream === `gift-${id}`);
      assert.ok(
        gift !== undefined && mayRedeem(gift).has(one.caller),
        `${one.caller} ${one.requested} shows a ${path}`,
      );
    }
    for (const value of pool)
      if (!given.has(value)) assert.ok(!showsIn(one, value), `${one.caller} ${one.requested} shows a free code`);
  }
  for (const gift of gifts) {
    const holders = new Set(
      heard
        .filter(
          ({ requested, reply }) =>
            requested.startsWith(`GET /api/v2/gifts/${service.shortcodeOf(gift.id)}?`) &&
            reply.json.embedded?.vouchers.length === 1,
        )
        .map(({ caller }) => caller),
    );
    assert.deepEqual(holders, mayRedeem(gift));
    const claimers = new Set(
      heard
        .filter(
          ({ requested, reply }) =>
            requested === `GET /api/v2/gifts/${service.shortcodeOf(gift.id)}/voucher/claimed` && reply.status === 200,
        )
        .map(({ caller }) => caller),
    );
    assert.deepEqual(claimers, mayRedeem(gift));
  }
});

test('receiver_id is the owner’s and the naming buyer’s to see, wherever a gift is shown', () => {
  let seen = 0;
  const look = (value: unknown, caller: string, requested: string): void => {
    if (typeof value !== 'object' || value === null) return;
    const { id, receiver_id } = value as Record<string, unknown>;
    const gift = gifts.find((one) => one.id === id);
    if (gift !== undefined && receiver_id !== undefined) {
      // Before it was claimed nobody was its receiver.
      const asThen = requested.startsWith('POST /api/v2/transactions') ? '' : (gift.receiver[caller] ?? '');
      assert.equal(receiver_id, asThen, `${caller} ${requested}`);
      seen += 1;
    }
    for (const inner of Object.values(value)) look(inner, caller, requested);
  };
  // What was shown then is shown with somebody's eyes.
  for (const { caller, requested, reply } of heard)
    look(
      reply.json,
      requested.includes('/as-of?') && reply.status === 200 ? (reply.json.viewer as string) : caller,
      requested,
    );
  assert.ok(seen > 100);
});

test('before its time no list or feed shows a scheduled gift, but to its buyer and client', () => {
  const unasked = heard.filter(({ requested }) => /^GET \/api\/v2\/(gifts|events|transactions)(\?|$)/.test(requested));
  const knowing = unasked.filter((one) => showsIn(one, later)).map(({ caller }) => caller);
  assert.deepEqual([...new Set(knowing)].sort(), ['client', 'noah']);
});

test('a purchase is its buyer’s alone; without a token none of it is visible', () => {
  const [first, second] = transactions;
  for (const { caller, requested, reply } of heard) {
    // What support and auditors are shown of purchases is looked at with all else.
    if (requested.includes('/transactions/') && reply.status === 200 && !isByStaff({ caller, requested }))
      assert.equal(
        caller,
        requested.includes(first ?? '') || requested.includes(transactions.at(-1) ?? '') ? 'olivia' : 'noah',
        requested,
      );
    if (caller === 'nobody' && /\/(?:api)\//.test(requested) && !requested.includes('openapi'))
      assert.equal(reply.status, 401, requested);
    if (caller === 'client' && /gifts|transactions/.test(requested) && requested.includes('/api/'))
      assert.ok([403, 404].includes(reply.status), requested);
  }
  assert.notEqual(first, second);
});

test('lists of gifts and payment methods hold the caller’s own, and all of them', () => {
  const answered = (path: string): readonly Heard[] => {
    const lists = heard.filter(({ requested, reply }) => requested === `GET ${path}` && reply.status === 200);
    assert.deepEqual(lists.map(({ caller }) => caller).sort(), [...USERS].sort(), path);
    return lists;
  };
  for (const { caller, reply } of answered('/api/v2/gifts')) {
    const shown = (reply.json.data as Json[]).filter(
      ({ id, gift_status }) => gift_status !== 'cancelled' || id === lost,
    );
    const own = gifts.filter(({ id, sender, owner }) => sender === caller || (owner === caller && id !== later));
    assert.deepEqual(shown.map(({ id }) => id as string).sort(), own.map(({ id }) => id).sort(), caller);
    assert.ok(caller === 'olivia' || reply.json.data.length === shown.length);
  }
  for (const { caller, reply } of answered('/api/v2/payment-methods'))
    assert.deepEqual(
      (reply.json.data as Json[]).map(({ reference }) => reference as string).sort(),
      CATALOGUE.payment_methods.flatMap(({ reference, users }) => (users.includes(caller) ? [reference] : [])).sort(),
    );
});

test('lists of purchases hold the caller’s own, and all of them', () => {
  const lists = heard.filter(
    ({ requested, reply }) => requested === 'GET /api/v2/transactions' && reply.status === 200,
  );
  assert.deepEqual(lists.map(({ caller }) => caller).sort(), [...USERS].sort());
  for (const { caller, reply } of lists) {
    const shown = (reply.json.data as Json[])
      .filter(({ status }) => status !== 'declined')
      .map(({ id }) => id as string);
    const own = transactions.filter((id) => buyerOf.get(id) === caller);
    assert.deepEqual(shown.sort(), own.sort(), caller);
    assert.ok(caller === 'olivia' || reply.json.data.length === shown.length);
  }
});

test('a webhook endpoint is its owner’s alone, and so is what it is sent', () => {
  for (const { id, owner } of hooked) {
    const about = heard.filter(({ requested }) => requested.includes(`${HOOKS}/${id}`));
    for (const { caller, requested, reply } of about) {
      const others = OWNERS.includes(caller) ? 404 : caller === 'nobody' ? 401 : 403;
      // Of events through a client, only that client’s endpoints are sent any.
      const own = requested.endsWith('/resend') && owner !== 'client' ? [422] : [200, 202];
      assert.ok((caller === owner ? own : [others]).includes(reply.status), `${caller} ${requested} ${reply.status}`);
    }
    assert.ok(about.length > 60, String(about.length));
    for (const one of heard)
      if (one.caller !== owner && !isByStaff(one))
        assert.ok(!showsIn(one, id), `${one.caller} ${one.requested} shows the endpoint of ${owner}`);
  }
});

test('a webhook’s secret is shown once, and stands in no log, event or record', async () => {
  const store = await service.openStore();
  const records = await store.records.list('', 100_000);
  await store.close();
  const kept = service.log.join('') + JSON.stringify([records, await wholeLog()]);
  assert.equal(new Set(hooked.flatMap(({ secrets }) => secrets)).size, 2 * OWNERS.length);
  for (const secret of hooked.flatMap(({ secrets }) => secrets)) {
    assert.equal(heard.filter((one) => showsIn(one, secret)).length, 1);
    const base64 = secret.replace('whsec_', '');
    const bytes = Buffer.from(base64, 'base64');
    for (const text of [base64, bytes.toString('base64url'), bytes.toString('hex')])
      assert.ok(!kept.includes(text), 'a secret stands where it must not');
  }
});

test('what is visible to some is hidden from all others, and who they are from everyone', () => {
  for (const one of heard.filter((each) => !isByStaff(each))) {
    assert.ok(!textsIn(one.reply.json).includes('visible_to'), one.requested);
    if (one.caller !== 'olivia')
      for (const value of ['b-hidden', 'p-hidden', 'Hidden product'])
        assert.ok(!showsIn(one, value), `${one.caller} ${one.requested}`);
  }
  assert.ok(heard.some((one) => one.caller === 'olivia' && showsIn(one, 'p-hidden')));
});

test('no log line shows a classified value, a credential, a key or a whole gift id', async () => {
  const lines = service.log.join('');
  assert.ok(service.log.length > 1_000);
  const values = new Set([
    ...(await classified()).map(({ value }) => value),
    ...credentials,
    ...Object.values(PHONES).flatMap((phone) => [phone, phone.slice(3)]),
  ]);
  for (const value of values) assert.ok(value.length < 6 || !lines.includes(value), `the log shows ${value}`);
  assert.doesNotMatch(lines, /Wish-|privacy-key|Bearer |@test\.example|Personal-Name/);
  for (const { id } of gifts)
    for (const whole of [id, service.shortcodeOf(id), service.shortcodeOf(id).toLowerCase()])
      assert.ok(
        !lines.includes(whole),
        `the log shows the gift ${whole}: ${lines.split('\n').find((line) => line.includes(whole))}`,
      );
  for (const line of service.log) assert.doesNotMatch(line, /"level":[56]0/);
});

test('classified values stand in the log at classified fields alone, and in no stream’s name', async () => {
  const events = await wholeLog();
  const values = new Set((await classified()).map(({ value }) => value).filter((value) => value.length >= 6));
  const look = (value: unknown, path: string, known: readonly string[], type: string): void => {
    if (typeof value === 'string') {
      if (!known.includes(path))
        for (const secret of values)
          assert.ok(!value.includes(secret), `${type}.${path} holds a value that is classified elsewhere`);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, inner] of Object.entries(value))
        look(inner, Array.isArray(value) ? `${path}[]` : path === '' ? key : `${path}.${key}`, known, type);
    }
  };
  for (const event of events) {
    const { secret, personal } = (FIELD_CLASSES as Readonly<Record<string, FieldClasses>>)[event.type] ?? {
      secret: [],
      personal: [],
    };
    look(event.data, '', [...secret, ...personal], event.type);
    look(event.metadata, '', [], `${event.type} metadata`);
    // A keyed hash names these streams: it is secret, and stands there alone.
    const hash = /^(?:phone|username|voucherCode-[^-]+)-(.+)$/.exec(event.stream)?.[1];
    for (const value of values) assert.ok(value === hash || !event.stream.includes(value), event.stream);
  }
});

test('stores no such value in a key beside the log, and no credential, name or number', async () => {
  const store = await service.openStore();
  try {
    const records = await store.records.list('', 100_000);
    assert.ok(
      records.some(({ key }) => key.startsWith('idempotency:')) && records.some(({ key }) => key.includes('throttle')),
      records.map(({ key }) => key.slice(0, 12)).join(' '),
    );
    const all = await classified();
    const values = [...new Set(all.map(({ value }) => value))].filter((value) => value.length >= 6);
    const shownAgain = new Set(['message', 'code', 'pin']);
    const never = [
      ...new Set([...all.filter(({ path }) => !shownAgain.has(path)).map(({ value }) => value), ...credentials]),
    ].filter((value) => value.length >= 6);
    for (const { key, value } of records) {
      for (const one of [...values, ...credentials]) assert.ok(!key.includes(one), `a record's key holds ${one}`);
      assert.ok(!key.includes('127.0.0.1'), 'a record’s key holds an address');
      const text = JSON.stringify(value);
      for (const one of never)
        assert.ok(!text.includes(one), `the record ${key.slice(0, 20)} holds ${one.slice(0, 20)}`);
    }
  } finally {
    await store.close();
  }
});

test('an answer is given again to its own caller alone', async () => {
  const [gift] = gifts;
  const again = await request(`${service.url}/api/v2/gifts/${gift?.id}/voucher/claimed`, 'POST', {
    token: await service.userToken('zed', CLIENT),
    key: 'privacy-key-voucher-0',
  });
  assert.deepEqual([again.status, again.headers.get('idempotent-replayed')], [403, null]);
});

test.run();
