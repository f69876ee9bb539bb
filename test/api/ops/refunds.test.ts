import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { gift as gift_ } from '../../support/service/cli.js';
import { buy, buyOne, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';

const test = suite('refunds by support');
let service: Service;
test.before(async () => {
  service = await startService();
});
test.after(() => service.close());

const transactionOf = async (gift: string): Promise<string> => (await look(gift)).transaction_id as string;
const look = async (gift: string): Promise<Json> =>
  (await service.ask('GET', `/api/v2/gifts/${gift}`, { token: await service.userToken('ann') })).json.data;
const refund = async (transaction: string, body: object, key?: string): Promise<Reply> =>
  service.ask('POST', `/ops/transactions/${transaction}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'wrong product', ...body },
    ...(key === undefined ? {} : { key }),
  });
const statusOf = async (transaction: string): Promise<string> =>
  (await service.ask('GET', `/api/v2/transactions/${transaction}`, { token: await service.userToken('ann') })).json.data
    .status as string;
const cli = (...args: string[]) => gift_(service.settings, ['purchases', ...args]);

test('cancels what can be cancelled and gives its share back, visible to buyer and history', async () => {
  const gifts = await buy(service, 'latte', [{}, {}, {}]);
  const [plain = '', used = '', out = ''] = gifts;
  await redeem(service, used);
  assert.equal(
    (await service.ask('POST', `/api/v2/gifts/${out}/voucher`, { token: await service.userToken('ann') })).status,
    200,
  );
  const transaction = await transactionOf(plain);

  refused(await refund(transaction, { gift_ids: [plain, used] }), 405, 'gift already redeemed.');
  refused(
    await refund(transaction, { gift_ids: [out] }),
    409,
    'gift has a voucher: say voided once its code is worthless.',
  );
  assert.equal((await look(plain)).gift_status, 'sent', 'nothing has changed');
  assert.equal(await statusOf(transaction), 'charged');

  const first = await refund(transaction, {}, 'once');
  assert.equal(first.status, 200, first.text);
  const { id, provider_ref, ...data } = first.json.data as Record<string, unknown>;
  assert.deepEqual(data, {
    transaction_id: transaction,
    status: 'refunded',
    amount: 350,
    gift_ids: [plain],
    kept: { redeemed: [used], code_out: [out] },
    provider: 'simulated',
    code: null,
  });
  assert.equal(provider_ref, `re_simulated_${String(id)}_1`);
  const again = await refund(transaction, {}, 'once');
  assert.deepEqual([again.status, again.json, again.headers.get('idempotent-replayed')], [200, first.json, 'true']);

  assert.equal(await statusOf(transaction), 'partially_refunded');
  const position = first.headers.get('gift-position') ?? '';
  const shown = await service.ask('GET', `/api/v2/gifts/${plain}`, {
    token: await service.userToken('ann'),
    headers: { 'Gift-Position': position },
  });
  assert.deepEqual([shown.json.data.gift_status, shown.json.data.status_code], ['cancelled', 'CA']);
  refused(await redeem(service, plain), 405, 'gift is cancelled and cannot be redeemed.');

  refused(await refund(transaction, { gift_ids: [service.shortcodeOf(plain)] }), 409, 'gift already refunded.');
  const voided = await refund(transaction, { gift_ids: [service.shortcodeOf(out)], voided: true });
  assert.deepEqual(
    [voided.json.data.status, voided.json.data.amount, voided.json.data.gift_ids],
    ['refunded', 350, [out]],
  );
  const left = await refund(transaction, {});
  assert.deepEqual([left.json.data.status, left.json.data.kept], ['nothing', { redeemed: [used] }]);

  const list = await service.ask('GET', `/ops/transactions/${transaction}/refunds`, {
    token: await service.userToken('aud'),
  });
  assert.deepEqual(
    (list.json.data as { status: string }[]).map(({ status }) => status),
    ['refunded', 'refunded', 'nothing'],
  );
  const [requested] = (await service.events.read(`transaction-${transaction}`)).filter(
    ({ type }) => type === 'RefundRequested',
  );
  assert.deepEqual(requested?.metadata.by, { user: 'sue', client: 'app', roles: ['support'] });
  assert.deepEqual(requested?.data, { refund_id: id, gift_ids: gifts, voided: false, reason: 'wrong product' });
});

test('a pending or declined purchase has nothing to give back', async () => {
  const slow = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken('ann'),
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.equal(slow.status, 402);
  const declined = (slow.headers.get('location') ?? '').split('/')[4] ?? '';
  refused(await refund(declined, {}), 409, 'nothing to refund.');
  await service.events.append('transaction-pending', [await purchasedLike(declined)], 'none');
  refused(await refund('pending', {}), 409, 'transaction is not settled yet.');
  assert.deepEqual(await cli('refund', 'pending', '--reason', 'x').then(({ code, out, err }) => [code, out, err]), [
    1,
    '',
    'gift: transaction is not settled yet.\n',
  ]);
  assert.deepEqual(
    (await service.events.read('transaction-pending'))
      .map(({ type }) => type)
      .filter((type) => type.includes('Refund')),
    [],
  );
  refused(await refund('unknown', {}), 404, 'transaction not found');
  refused(await refund('unknown', { reason: '' }), 404, 'transaction not found');
});

/** The first event of another purchase, by a payment method that nobody has, so that it stays pending. */
async function purchasedLike(transaction: string): Promise<Json> {
  const [first] = await service.events.read(`transaction-${transaction}`);
  if (first === undefined) throw new Error('no purchase');
  return {
    ...first,
    id: crypto.randomUUID(),
    data: { ...first.data, transaction_id: 'pending', payment_reference: 'nobody-has-it' },
  };
}

test('gifts of others, senseless ids, no reason, no role', async () => {
  const [mine, other] = [await buyOne(service), await buyOne(service)];
  const transaction = await transactionOf(mine);
  refused(await refund(transaction, { gift_ids: [other] }), 422, 'gift not in this transaction.');
  refused(await refund(transaction, { gift_ids: ['nonsense'] }), 422, 'gift not in this transaction.');
  refused(await refund(transaction, { reason: ' ' }), 422, 'reason must not be empty');
  assert.equal((await refund(transaction, { gift_ids: [] })).status, 422);
  for (const user of ['aud', 'ann'])
    refused(
      await service.ask('POST', `/ops/transactions/${transaction}/refund`, {
        token: await service.userToken(user),
        body: { reason: 'x' },
      }),
      403,
      'Forbidden.',
    );
  await service.events.append(
    `gift-${mine}`,
    [
      {
        id: crypto.randomUUID(),
        type: 'GiftCancelled',
        at: new Date().toISOString(),
        data: { reason: 'x' },
        metadata: { commandId: 'x', correlationId: 'x', by: {} },
      },
    ],
    'any',
  );
  refused(await refund(transaction, { gift_ids: [mine] }), 409, 'gift is cancelled already.');
  assert.equal(
    (await service.events.read(`transaction-${transaction}`)).filter(({ type }) => type.startsWith('Refund')).length,
    0,
  );
});

test('a wallet gets its money back; one that is settled by invoice is not billed for it', async () => {
  for (const [reference, provider] of [
    ['wallet-prepaid', 'wallet'],
    ['wallet-invoice', 'invoice'],
  ] as const) {
    const bought = await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', undefined, { reference }),
    });
    const transaction = bought.json.data.id as string;
    const { id, status, provider: by, provider_ref } = (await refund(transaction, {})).json.data;
    assert.deepEqual([status, by, provider_ref], ['refunded', provider, `${provider}-${id}`]);
  }
  const [last] = (await service.events.read('wallet-wallet-prepaid')).slice(-1);
  assert.equal(last?.type, 'WalletCredited');
});

test('has one winner for each gift that is redeemed, vouchered and refunded at once', async () => {
  const gifts = await buy(
    service,
    'latte',
    Array.from({ length: 24 }, () => ({})),
  );
  const transaction = await transactionOf(gifts[0] ?? '');
  const till = (gift: string): Promise<Reply> => redeem(service, gift);
  const voucher = async (gift: string): Promise<Reply> =>
    service.ask('POST', `/api/v2/gifts/${gift}/voucher`, { token: await service.userToken('ann') });
  await Promise.all(['till-coffee', 'ann', 'sue'].map((user) => service.userToken(user)));
  const uses = gifts.slice(0, 20).map((gift, index) => (index % 2 === 0 ? till : voucher)(gift));
  const refunding = refund(transaction, {});
  const more = gifts.slice(20).map((gift, index) => (index % 2 === 0 ? till : voucher)(gift));
  const replies = await Promise.all([...uses, ...more]);
  const { status, amount, gift_ids, kept } = (await refunding).json.data as {
    status: string;
    amount: number;
    gift_ids: string[];
    kept: { redeemed?: string[]; code_out?: string[] };
  };
  assert.ok(status === 'refunded' || status === 'nothing', status);
  for (const [index, gift] of gifts.entries()) {
    const reply = replies[index];
    const used = reply !== undefined && reply.status < 300;
    if (!used) refused(reply as Reply, 405, 'gift is cancelled and cannot be redeemed.');
    assert.equal(gift_ids.includes(gift), !used, gift);
    assert.equal((index % 2 === 0 ? kept.redeemed : kept.code_out)?.includes(gift) ?? false, used, gift);
    const own = (await service.events.read(`gift-${gift}`))
      .map(({ type }) => type)
      .filter((type) => type !== 'GiftIssued');
    assert.deepEqual(own, [used ? (index % 2 === 0 ? 'GiftRedeemed' : 'VoucherAssigned') : 'GiftCancelled']);
  }
  assert.equal(amount, gift_ids.length * 350);
  // What is left of it goes back once the codes are worthless.
  const out = kept.code_out ?? [];
  const rest = await cli('refund', transaction, '--voided', '--reason', 'codes withdrawn by the brand', '--json');
  const [record] = rest.records();
  assert.deepEqual(
    [record?.['amount'], ((record?.['gift_ids'] ?? []) as string[]).toSorted()],
    [out.length * 350, out.toSorted()],
    rest.err,
  );
  const requested = (await service.events.read(`transaction-${transaction}`))
    .filter(({ type }) => type === 'RefundRequested')
    .at(-1);
  const { voided, reason } = (requested?.data ?? {}) as Json;
  assert.deepEqual([voided, reason], [true, 'codes withdrawn by the brand']);
});

test('the command line does the same, in words and as JSON', async () => {
  const gifts = await buy(service, 'latte', [{}, {}, {}, {}]);
  const [first = '', second = '', third = ''] = gifts;
  const transaction = await transactionOf(first);
  await redeem(service, third);
  const one = await cli(
    'refund',
    transaction,
    '--gift',
    first,
    '--gift',
    service.shortcodeOf(second),
    '--reason',
    'wrong product',
  );
  assert.deepEqual([one.code, one.err], [0, '']);
  assert.match(
    one.out,
    /^refund [0-9a-f]{32} of purchase [0-9a-f]{32}: 2 gifts cancelled, £7\.00 given back by simulated \(re_simulated_[0-9a-f]{32}_1\)\n$/,
  );
  const rest = await cli('refund', transaction, '--reason', 'wrong product', '--json');
  assert.equal(rest.code, 0, rest.err);
  const [record] = rest.records();
  assert.deepEqual(
    [record?.['status'], record?.['amount'], record?.['kept']],
    ['refunded', 350, { redeemed: [third] }],
  );
  const [requested] = (await service.events.read(`transaction-${transaction}`)).filter(
    ({ type }) => type === 'RefundRequested',
  );
  assert.match(requested?.metadata.by.user ?? '', /^cli:/);
  const nothing = await cli('refund', transaction, '--reason', 'wrong product');
  assert.equal(nothing.code, 1);
  assert.match(nothing.out, /nothing\nleft as they are: 1 gift redeemed\n$/);
  assert.match(nothing.err, /no gift could be cancelled/);
  assert.deepEqual(
    await cli('refund', transaction, '--gift', first, '--reason', 'x').then(({ code, err }) => [code, err]),
    [1, 'gift: gift already refunded.\n'],
  );
  const list = await cli('refunds', transaction);
  assert.equal(list.out.trimEnd().split('\n').length, 5);
  assert.equal((await cli('refunds', transaction, '--json')).records().length, 3);
});

test("the command line refuses what it can't understand", async () => {
  for (const [args, message] of [
    [['refund', 'x', '--reason', ' '], /--reason must not be empty/],
    [['refund', 'x', '--reason', 'y', '--wait', 'long'], /--wait must be a whole number of seconds/],
    [['refund', 'x', '--reason', 'y', '--gift', 'z'], /--gift must be a gift's id or shortcode, not "z"/],
    [['refund', 'x'], /refund wants --reason/],
  ] as const) {
    const { code, err } = await cli(...args);
    assert.equal(code, 2, err);
    assert.match(err, message);
  }
  assert.deepEqual(await cli('refunds', 'unknown').then(({ code, err }) => [code, err]), [
    1,
    'gift: transaction not found\n',
  ]);
});

test('what the provider refuses is said, and parked; without a running process it waits', async () => {
  await service.import({ payment_methods: [{ reference: 'pm_card_refundFail', kind: 'card', users: ['ann'] }] });
  const body = purchaseOf('latte', undefined, { reference: 'pm_card_refundFail' });
  let bought: Reply;
  do bought = await service.ask('POST', '/api/v2/transactions', { token: await service.userToken('ann'), body });
  while (bought.status === 422);
  const transaction = bought.json.data.id as string;
  const failed = await cli('refund', transaction, '--reason', 'x');
  assert.equal(failed.code, 1);
  assert.match(failed.out, /1 gift cancelled, £3\.50 not given back/);
  assert.match(
    failed.err,
    /simulated refuses: expired_or_canceled_card; the gifts are cancelled and the refund is parked/,
  );
  refused(await refund(transaction, {}), 409, 'nothing to refund.');

  const at = { correlationId: 'x', by: {} };
  await service.events.append(
    'transaction-lonely',
    [
      {
        ...(await purchasedLike(transaction)),
        data: { ...(await purchasedLike(transaction)).data, transaction_id: 'lonely', seed: 'cd'.repeat(32) },
      },
    ],
    'none',
  );
  await service.events.append(
    'transaction-lonely',
    [
      {
        id: crypto.randomUUID(),
        type: 'PaymentCharged',
        at: new Date().toISOString(),
        data: { amount: 350, provider: 'nobody', charge_id: 'c' },
        metadata: { commandId: 'x', ...at },
      },
    ],
    'any',
  );
  const waiting = await cli('refund', 'lonely', '--reason', 'x', '--wait', '1');
  assert.deepEqual([waiting.code, waiting.err], [0, '']);
  assert.match(waiting.out, /under way for 1 gift; a running service finishes it/);
});

test.run();
