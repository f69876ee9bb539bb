/** Which field a 422 is about, where its message does not say (docs/api/errors.md#field-of-an-error). */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { buy, purchaseOf } from '../support/service/giftFlow.js';
import { type Service, startService } from '../support/service/service.js';

const test = suite('field of an error');
let service: Service;
let gifts: readonly string[] = [];
let transaction = '';
test.before(async () => {
  service = await startService({ catalogue: CATALOGUE });
  gifts = await buy(service, 'latte', [{}, {}]);
  const shown = await service.ask('GET', `/api/v2/gifts/${gifts[0]}`, { token: await service.userToken('ann') });
  transaction = shown.json['data']['transaction_id'] as string;
});
test.after(() => service.close());

const reason = 'asked for it';
const TIME = '2026-05-04T12:30:00Z';
for (const [user, method, path, body, field] of [
  ['ann', 'POST', () => '/api/v2/transactions', purchaseOf('nothing'), 'purchase.reference'],
  ['ann', 'POST', () => '/api/v2/transactions', purchaseOf('latte', [{}], { reference: 'pm' }), 'payment.reference'],
  ['ann', 'POST', () => '/api/v2/transactions', { ...purchaseOf('latte'), embed: ['gifts', 'zz'] }, 'embed[1]'],
  ['ann', 'GET', () => `/api/v2/gifts/${gifts[0]}?embed[]=zz`, undefined, 'embed[0]'],
  ['ann', 'GET', () => '/api/v2/gifts?embed[]=message', undefined, 'embed[0]'],
  ['ann', 'GET', () => '/api/v2/transactions?embed=gifts', undefined, 'embed[0]'],
  ['ann', 'GET', () => `/api/v2/gifts/${gifts[0]}/redemptions?embed[0]=gift`, undefined, 'embed[0]'],
  ['ann', 'GET', () => '/api/v2/events?embed[]=gifts', undefined, 'embed[0]'],
  ['ann', 'GET', () => '/api/v2/payment-methods?embed[]=users', undefined, 'embed[0]'],
  ['aud', 'GET', () => '/ops/redemptions?embed[]=gift', undefined, 'embed[]'],
  [
    'ann',
    'POST',
    () => '/api/v2/transactions',
    purchaseOf('latte', [{}, { user_id: 'nobody' }]),
    'purchase.receivers[1].user_id',
  ],
  [
    'ann',
    'POST',
    () => '/api/v2/transactions',
    purchaseOf('latte', [{}, { phone_number: '12' }]),
    'purchase.receivers[1].phone_number',
  ],
  ['till-coffee', 'POST', () => `/api/v2/gifts/${gifts[0]}/redemptions`, { location_id: 'nowhere' }, 'location_id'],
  ['sue', 'POST', () => `/ops/gifts/${gifts[0]}/reassign`, { reason, user_id: 'nobody' }, 'user_id'],
  ['sue', 'POST', () => `/ops/gifts/${gifts[0]}/reassign`, { reason, phone_number: '12' }, 'phone_number'],
  ['sue', 'POST', () => `/ops/gifts/${gifts[0]}/extend`, { reason, expiry_date: '2020-01-01' }, 'expiry_date'],
  [
    'sue',
    'POST',
    () => `/ops/transactions/${transaction}/refund`,
    () => ({ reason, gift_ids: [...gifts, 'f'.repeat(20)] }),
    'gift_ids[2]',
  ],
  ['sue', 'POST', () => `/ops/transactions/${transaction}/refund`, { reason, gift_ids: ['zz'] }, 'gift_ids[0]'],
  ['sue', 'GET', () => '/ops/people?phone_number=zz&reason=asked', undefined, 'phone_number'],
  ['aud', 'GET', () => '/ops/redemptions?merchant=zz', undefined, 'merchant'],
  ['aud', 'GET', () => '/ops/redemptions?to=soon', undefined, 'to'],
  ['aud', 'GET', () => '/ops/totals?from=2026-05-04&to=2026-05-03', undefined, 'from'],
  ['aud', 'GET', () => '/ops/totals?time_zone=Mars', undefined, 'time_zone'],
  ['aud', 'GET', () => '/ops/redemptions?after=zz', undefined, 'after'],
  ['aud', 'GET', () => '/ops/payments/reconciliation?day=2026-5-4', undefined, 'day'],
  ['aud', 'GET', () => `/ops/gifts/${gifts[0]}/history?personal=true`, undefined, 'reason'],
  ['aud', 'GET', () => `/ops/gifts/${gifts[0]}/as-of?time=soon`, undefined, 'time'],
  ['aud', 'GET', () => `/ops/gifts/${gifts[0]}/as-of?time=${TIME}&time_zone=Mars`, undefined, 'time_zone'],
] as const)
  test(`${method} as ${user}: ${field} of ${path().replaceAll('undefined', '…')}`, async () => {
    const reply = await service.ask(method, path(), {
      token: await service.userToken(user),
      ...(body === undefined ? {} : { body: typeof body === 'function' ? body() : body }),
    });
    assert.deepEqual([reply.status, reply.headers.get('error-field')], [422, field], reply.text);
  });

test('the description of an operation that embeds has the header', async () => {
  const { json } = await service.ask('GET', '/openapi.json');
  const answer = json['paths']['/api/v2/gifts/{giftId}']['get']['responses']['422'] as {
    readonly headers: Readonly<Record<string, unknown>>;
  };
  assert.ok('Error-Field' in answer.headers);
});

test.run();
