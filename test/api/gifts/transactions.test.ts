import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { notificationStream } from '../../../src/domain/notification.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import { buy, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('transactions');
let service: Service;

test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

async function purchase(body: object, user = 'ann', query = ''): Promise<Reply> {
  return service.ask('POST', `/api/v2/transactions/${query}`, { token: await service.userToken(user), body });
}

async function get(path: string, user = 'ann'): Promise<Reply> {
  return service.ask('GET', path, { token: await service.userToken(user) });
}

test('a purchase without receivers makes one gift to be shared by URL', async () => {
  const reply = await purchase(purchaseOf('latte'));
  assert.equal(reply.status, 201);
  const { data, embedded } = reply.json;
  assert.deepEqual(Object.keys(data).sort(), [
    'created_at',
    'gifts',
    'id',
    'purchased_at_date',
    'purchased_at_time',
    'retail',
    'status',
    'updated_at',
  ]);
  assert.deepEqual([data.retail, data.status, data.gifts.length, embedded], ['3.50', 'charged', 1, []]);
  assert.match(data.created_at, /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/);
  assert.equal(`${data.purchased_at_date} ${data.purchased_at_time}`, data.created_at);
  assert.equal(reply.headers.get('location'), `/api/v2/transactions/${data.id}/gifts`);
  const gift = (await get(`/api/v2/gifts/${data.gifts[0]}`)).json.data;
  assert.deepEqual(
    [gift.status, gift.status_code, gift.gift_status, gift.receiver_id, gift.sender_id],
    [12, 'UC', 'sent', '', 'ann'],
  );
  assert.notEqual(gift.sent_date, '');
});

test('a bulk purchase, its totals, embeds and receivers', async () => {
  const body = purchaseOf('latte', [{ phone_number: '07700 900002' }, { user_id: 'cat' }, {}], {
    message: 'Enjoy! 🎁',
  });
  const reply = await purchase(
    { ...body, embed: ['gifts.message'] },
    'ann',
    '?embed[]=gifts.purchase.brand&embed=gifts.voucher',
  );
  assert.equal(reply.status, 201);
  const { data, embedded } = reply.json;
  assert.equal(data.retail, '10.50');
  assert.deepEqual(Object.keys(embedded).sort(), ['brands', 'gifts', 'messages', 'products', 'vouchers']);
  assert.deepEqual(
    embedded.gifts.map((gift: Json) => gift.id),
    data.gifts,
  );
  assert.deepEqual(
    embedded.gifts.map((gift: Json) => [gift.receiver_id, gift.status_code]),
    [
      ['', 'SE'],
      ['cat', 'SE'],
      ['', 'UC'],
    ],
  );
  assert.deepEqual(
    embedded.messages.map((message: Json) => message.message),
    Array(3).fill('Enjoy! 🎁'),
  );
  assert.deepEqual([embedded.products.length, embedded.brands.length, embedded.vouchers], [1, 1, []]);
});

test('the same, as things are now', async () => {
  const bought = (await purchase(purchaseOf('latte', [{ user_id: 'bob' }]))).json.data;
  await redeem(service, bought.gifts[0]);
  const reply = await get(`/api/v2/transactions/${bought.id}?embed[]=gifts`);
  assert.equal(reply.status, 200);
  assert.deepEqual(reply.json.data, bought);
  assert.equal(reply.json.embedded.gifts[0].gift_status, 'redeemed');
  refused(await get(`/api/v2/transactions/${bought.id}`, 'bob'), 404, 'transaction not found');
  refused(await get('/api/v2/transactions/nonsense'), 404, 'transaction not found');
});

test('notifies receivers once: by SMS, by push, or not at all', async () => {
  const [sms, push, none, shared] = await buy(service, 'latte', [
    { phone_number: '\u202a+44 7700 900777\u202c' },
    { user_id: 'ann' },
    { user_id: 'cat' },
    {},
  ]);
  const told = (id: string | undefined): Promise<string> =>
    eventually(async () => {
      const last = (await service.events.read(notificationStream(id ?? ''))).at(-1);
      return last === undefined || last.type === 'NotificationStarted'
        ? undefined
        : `${last.type} ${JSON.stringify(last.data)}`;
    });
  assert.match(await told(sms), /^NotificationSent .*"channel":"sms"/);
  assert.match(await told(push), /^NotificationSent .*"channel":"push"/);
  assert.match(await told(none), /^NotificationFailed .*no address/);
  assert.deepEqual(await service.events.read(notificationStream(shared ?? '')), []);
});

test('an amount that no card can be charged with: 422, nothing is bought; a wallet pays it', async () => {
  const product = { brand_id: 'bean', active: true };
  await service.import({
    products: [
      { id: 'cheap', name: 'Cheap', sale_price: 20, ...product },
      { id: 'dear', name: 'Dear', sale_price: 100_000_000, ...product },
    ],
  });
  await eventually(async () => (await get('/api/v2/products/dear')).status === 200);
  refused(await purchase(purchaseOf('cheap')), 422, 'Amount too small: a card is charged at least 0.30.');
  refused(
    await purchase(purchaseOf('dear', [{ phone_number: '12' }])),
    422,
    'Amount too large: a card is charged at most 999999.99.',
  );
  assert.equal((await purchase(purchaseOf('cheap', [{}, {}]))).json.data.retail, '0.40');
});

test('a card that its provider will never charge again: 402, the gifts are cancelled', async () => {
  await service.import({ payment_methods: [{ reference: 'pm_card_detached', kind: 'card', users: ['ann'] }] });
  const reply = await eventually(async () => {
    const requested = await purchase(purchaseOf('latte', [{ user_id: 'bob' }], { reference: 'pm_card_detached' }));
    return requested.status === 422 ? undefined : requested;
  });
  refused(reply, 402, 'Payment declined.');
});

test('a declined charge: 402, the gifts are cancelled', async () => {
  const reply = await purchase(purchaseOf('latte', [{ user_id: 'bob' }], { reference: 'pm_card_visa_chargeDeclined' }));
  refused(reply, 402, 'Payment declined.');
  const location = reply.headers.get('location') ?? '';
  assert.match(location, /^\/api\/v2\/transactions\/[0-9a-f]{32}\/gifts$/);
  const written = (await service.events.read(transactionStream(location.split('/')[4] ?? ''))).at(-1)?.position ?? '';
  assert.equal(reply.headers.get('gift-position'), `${service.events.logId}:${written}`);
  const id = location.split('/')[4] ?? '';
  const shown = await get(`/api/v2/transactions/${id}`);
  refused(shown, 402, 'Payment declined.');
  for (const { headers } of [reply, shown]) {
    assert.equal(headers.get('decline-code'), 'generic_decline');
    assert.equal(headers.get('transaction-id'), id);
  }
  const { data } = (await get(location)).json;
  assert.deepEqual(
    [data[0].gift_status, data[0].status, data[0].status_code, data[0].sent_date],
    ['cancelled', 3, 'CA', ''],
  );
  refused(await redeem(service, data[0].id, 'bob'), 405, 'gift is cancelled and cannot be redeemed.');
  const types = (await service.events.read(transactionStream(location.split('/')[4] ?? ''))).map(({ type }) => type);
  assert.deepEqual(types, ['GiftsPurchased', 'ChargeStarted', 'PaymentDeclined']);
});

test('a repeated declined purchase is told the same code; whose card was reported is not told so', async () => {
  const references = [
    ['pm_card_visa_chargeDeclinedIncorrectCvc', 'incorrect_cvc'],
    ['pm_card_visa_chargeDeclinedStolenCard', 'generic_decline'],
  ] as const;
  await service.import({
    payment_methods: references.map(([reference]) => ({ reference, kind: 'card', users: ['ann'] })),
  });
  for (const [reference, code] of references) {
    const buyByKey = async (): Promise<Reply> =>
      service.ask('POST', '/api/v2/transactions', {
        token: await service.userToken('ann'),
        body: purchaseOf('latte', undefined, { reference }),
        headers: { 'Idempotency-Key': reference },
      });
    const first = await eventually(async () => {
      const reply = await buyByKey();
      return reply.status === 402 ? reply : undefined;
    });
    const again = await buyByKey();
    assert.equal(again.headers.get('idempotent-replayed'), 'true');
    for (const { headers } of [first, again]) assert.equal(headers.get('decline-code'), code);
    assert.equal(again.headers.get('transaction-id'), first.headers.get('transaction-id'));
  }
});

test('wallets: by invoice, and prepaid until it is used up', async () => {
  assert.equal((await purchase(purchaseOf('ticket', undefined, { reference: 'wallet-invoice' }))).status, 201);
  assert.equal((await purchase(purchaseOf('latte', [{}, {}], { reference: 'wallet-prepaid' }))).status, 201);
  const declined = await purchase(purchaseOf('mocha', undefined, { reference: 'wallet-prepaid' }));
  refused(declined, 402, 'Payment declined.');
  assert.equal(declined.headers.get('decline-code'), 'insufficient_funds');
  assert.equal((await purchase(purchaseOf('pooled', undefined, { reference: 'wallet-prepaid' }))).status, 201);
});

test('what a purchase refuses, in order', async () => {
  const ok = purchaseOf('latte') as Json;
  const refusals: [object, number, string][] = [
    [{}, 422, 'payment is required'],
    [{ ...ok, payment: { method: 'cash', reference: 'x' } }, 422, 'payment.method must be card'],
    [{ ...ok, payment: { method: 'card' } }, 422, 'payment.reference is required'],
    [{ ...ok, purchase: { ...ok.purchase, type: 'voucher' } }, 422, 'purchase.type must be gift'],
    [{ ...ok, purchase: { type: 'gift' } }, 422, 'purchase.reference is required'],
    [{ ...ok, purchase: { ...ok.purchase, receivers: [] } }, 422, 'receivers: at least 1'],
    [{ ...ok, purchase: { ...ok.purchase, receivers: Array(10_001).fill({}) } }, 422, 'receivers: at most 10000'],
    [
      { ...ok, purchase: { ...ok.purchase, receivers: [{ phone_number: '07700 900001', user_id: 'bob' }] } },
      422,
      'receivers: give only one of phone_number or user_id',
    ],
    [
      { ...ok, purchase: { ...ok.purchase, message: 'x'.repeat(1001) } },
      422,
      'purchase.message: at most 1000 characters',
    ],
    ...['\u0000', '\u0007', '\u001b', '\u007f', '\u0085', '\u202a', '\u202e', '\u2066', '\u2069'].map(
      (character): [object, number, string] => [
        { ...ok, purchase: { ...ok.purchase, message: `a${character}b` } },
        422,
        'purchase.message must not contain control characters, nor ones that turn the direction of text',
      ],
    ),
    [
      { ...ok, purchase: { ...ok.purchase, receivers: [{ user_id: 7 }] } },
      422,
      'purchase.receivers[0].user_id must be a string',
    ],
    [{ ...ok, more: 1 }, 422, 'more is not a known field'],
    [{ ...ok, embed: ['gifts.nonsense'] }, 422, 'Unknown embed: gifts.nonsense.'],
    [purchaseOf('nothing', undefined, { reference: 'nothing' }), 422, 'Invalid payment reference.'],
    [purchaseOf('nothing', [{ user_id: 'nobody' }]), 422, 'Invalid product.'],
    [purchaseOf('old'), 422, 'Invalid product.'],
    [purchaseOf('shut'), 422, 'Invalid product.'],
    [purchaseOf('secret'), 422, 'Invalid product.'],
    [purchaseOf('latte', [{ user_id: 'nobody' }]), 422, 'Receiver not found.'],
    [purchaseOf('latte', [{ user_id: 'gone' }]), 422, 'Receiver not found.'],
    [purchaseOf('latte', [{ phone_number: '12' }]), 422, 'Invalid phone number.'],
    [purchaseOf('latte', [{ phone_number: '+44 20' }, {}]), 422, 'Invalid phone number.'],
    [purchaseOf('latte', [{ phone_number: '+3538501234560' }]), 422, 'Invalid phone number.'],
    [purchaseOf('latte', [{ phone_number: '0909 879 0000' }]), 422, 'Invalid phone number.'],
  ];
  for (const [body, status, error] of refusals) refused(await purchase(body), status, error);
  refused(await purchase(purchaseOf('nothing'), 'cat'), 403, 'Cannot use this payment method.');
  assert.equal((await purchase({ ...ok, purchase: { ...ok.purchase, message: '🎁'.repeat(1000) } })).status, 201);
  const lines = { ...ok, purchase: { ...ok.purchase, message: 'Liebe Grüße,\r\n\tمرحبا\u200f' } };
  assert.equal((await purchase(lines)).status, 201);
});

test('a brand visible to some is sold to them only', async () => {
  assert.equal((await purchase(purchaseOf('secret'), 'vip')).status, 201);
});

test('pages of a transaction’s gifts', async () => {
  const { data } = (await purchase(purchaseOf('latte', Array(45).fill({})))).json;
  const path = `/api/v2/transactions/${data.id}/gifts`;
  const first = (await get(`${path}?embed[]=message`)).json;
  assert.deepEqual(
    { ...first, data: first.data.length, embedded: first.embedded.messages.length },
    {
      current_page: 1,
      data: 20,
      from: 1,
      to: 20,
      last_page: 3,
      next_page_url: `${service.url}${path}?embed%5B%5D=message&page=2`,
      prev_page_url: null,
      path: service.url + path,
      per_page: 20,
      total: 45,
      embedded: 20,
    },
  );
  const last = (await get(new URL(first.next_page_url).pathname + '?page=3&per_page=20')).json;
  assert.deepEqual(
    [last.from, last.to, last.data.length, last.next_page_url === null, last.embedded],
    [41, 45, 5, true, []],
  );
  const beyond = (await get(`${path}/?page=9`)).json;
  assert.deepEqual([beyond.from, beyond.to, beyond.data, new URL(beyond.prev_page_url).search], [0, 0, [], '?page=3']);
  const all = [];
  for (const page of [1, 2, 3, 4, 5])
    all.push(...(await get(`${path}?page=${page}&per_page=10`)).json.data.map((gift: Json) => gift.id));
  assert.deepEqual(all, data.gifts);
  refused(await get(`${path}?page=0`), 422, 'page must be at least 1');
  refused(await get(`${path}?per_page=101`), 422, 'per_page must be at most 100');
  refused(await get(`${path}?page=x`), 422, 'page must be a whole number');
  refused(await get(`${path}?page=1&page=2`), 422, 'page must be given only once');
  refused(await get(`${path}?embed[]=redeemed`), 422, 'Unknown embed: redeemed.');
  refused(await get(path, 'bob'), 404, 'transaction not found');
});

test('a charge that takes longer than the wait leaves the gifts pending until it has settled', async () => {
  const quick = await startService({ env: { CHARGE_WAIT_MS: '50' } });
  try {
    // The charge takes 3 s: whoever asks meanwhile has logged in before.
    const [token, bob, till] = await Promise.all(['ann', 'bob', 'till-coffee'].map((user) => quick.userToken(user)));
    const reply = await quick.ask('POST', '/api/v2/transactions?embed[]=gifts', {
      token: token!,
      body: purchaseOf('latte', undefined, { reference: 'pm_card_slow' }),
    });
    assert.equal(reply.status, 201);
    const { data, embedded } = reply.json;
    assert.deepEqual(
      [
        embedded.gifts[0].gift_status,
        embedded.gifts[0].status,
        embedded.gifts[0].status_code,
        embedded.gifts[0].sent_date,
      ],
      ['pending', 2, 'PE', ''],
    );
    const gift = `/api/v2/gifts/${data.gifts[0]}`;
    const [redeemed, assigned, claimed, codes] = await Promise.all([
      redeem(quick, data.gifts[0], 'ann'),
      quick.ask('POST', `${gift}/voucher`, { token: token! }),
      quick.ask('POST', `/api/v2/gifts/${quick.shortcodeOf(data.gifts[0])}/claim`, { token: bob! }),
      quick.ask('GET', `${gift}/product/adjustment-codes`, { token: till! }),
    ]);
    for (const reply of [redeemed, assigned, claimed]) refused(reply, 405, 'gift is not paid for yet.');
    assert.equal(codes.status, 200);
    await eventually(async () => (await redeem(quick, data.gifts[0], 'ann')).status === 201);
  } finally {
    await quick.close();
  }
});

test.run();
