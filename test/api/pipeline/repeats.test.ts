/**
 * Which refusals an idempotency key gives again: those that only another act could change, none that time alone ends
 * (docs/api/conventions.md#kept-refusals).
 */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { isKept, retryAfterOf } from '../../../src/api/pipeline/errors.js';
import { ERRORS, type ErrorCode } from '../../../src/domain/errors.js';
import { buy, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';
import { CATALOGUE } from '../../support/fixtures/testCatalogue.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('repeats of refused requests');
let service: Service;

test.before(async () => {
  service = await startService({ env: { CHARGE_WAIT_MS: '50' } });
});
test.after(() => service.close());

const post = async (path: string, user: string, key: string, body?: object): Promise<Reply> =>
  service.ask('POST', `/api/v2/${path}`, {
    token: await service.userToken(user),
    key,
    ...(body === undefined ? {} : { body }),
  });

test('refuses a gift whose charge is under way with Retry-After; the same key redeems it later', async () => {
  const bought = await post(
    'transactions',
    'ann',
    'slow',
    purchaseOf('latte', [{}, {}, {}], { reference: 'pm_card_slow' }),
  );
  assert.equal(bought.status, 201, bought.text);
  const [redeemed = '', claimed = '', vouchered = ''] = bought.json.data.gifts as string[];
  const requested: (() => Promise<Reply>)[] = [
    async () => redeem(service, redeemed, 'ann', 'bean-soho', { key: 'waits-redeem' }),
    async () => post(`gifts/${service.shortcodeOf(claimed)}/claim`, 'bob', 'waits-claim'),
    async () => post(`gifts/${vouchered}/voucher`, 'ann', 'waits-voucher'),
  ];
  for (const reply of await Promise.all(requested.map(async (ask) => ask()))) {
    refused(reply, 405, 'gift is not paid for yet.');
    assert.match(reply.headers.get('retry-after') ?? '', /^[1-9]\d*$/);
  }
  for (const ask of requested) {
    const done = await eventually(async () => {
      const reply = await ask();
      return reply.status < 300 && reply;
    });
    assert.equal(done.headers.get('idempotent-replayed'), null, 'the first answer that is kept');
    assert.deepEqual((await ask()).json, done.json);
  }
});

test('a voucher of an empty pool is made by the same key once codes have been imported', async () => {
  const gifts = await buy(service, 'pooled', Array(4).fill({}));
  await eventually(
    async () =>
      (await service.ask('GET', `/api/v2/gifts/${gifts[3] ?? ''}`, { token: await service.userToken('ann') })).json.data
        .gift_status === 'sent',
  );
  for (const gift of gifts.slice(0, 3))
    assert.equal((await post(`gifts/${gift}/voucher/claimed`, 'ann', `pool-${gift}`)).status, 200);
  const late = async (): Promise<Reply> => post(`gifts/${gifts[3] ?? ''}/voucher/claimed`, 'ann', 'pool-late');
  refused(await late(), 422, 'Voucher not available.');
  await service.import({
    voucher_codes: [...CATALOGUE.voucher_codes, { segment_id: 'seg-pool', code: 'POOL-0009', pin: '9999' }],
  });
  await eventually(async () => (await late()).status === 200);
});

test('what is kept says nothing of asking again, and is a refusal that was decided', () => {
  for (const code of Object.keys(ERRORS) as ErrorCode[]) {
    if (!isKept(code)) continue;
    assert.deepEqual(retryAfterOf(code), {}, code);
    assert.ok([402, 403, 404, 405, 422].includes(ERRORS[code][0]), code);
  }
});

test.run();
