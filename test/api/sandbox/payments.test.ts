import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { eventually } from '../../support/assertions/until.js';
import { purchaseOf, refused } from '../../support/service/giftFlow.js';
import { type Reply, type Service, startService } from '../../support/service/service.js';

const CHALLENGED = 'pm_card_authenticationRequired';
const CHALLENGED_IN_VAIN = 'pm_card_authenticationRequiredChargeDeclinedInsufficientFunds';

const test = suite('payments of the sandbox');
let service: Service;

test.before(async () => {
  service = await startService({ env: { SANDBOX: '1' } });
});
test.after(() => service.close());

const post = async (path: string, body: object, user = 'bob'): Promise<Reply> =>
  service.ask('POST', path, { token: await service.userToken(user), body });
const get = async (path: string, user = 'bob'): Promise<Reply> =>
  service.ask('GET', path, { token: await service.userToken(user) });
const give = async (reference: string, user = 'bob'): Promise<Reply> =>
  post('/sandbox/payment-methods', { reference }, user);

/** Buys with a card that its bank asks about. @returns the transaction's id */
async function challenged(reference: string): Promise<string> {
  assert.equal((await give(reference)).status, 200);
  const reply = await post('/api/v2/transactions', purchaseOf('latte', undefined, { reference }));
  assert.equal(reply.status, 402, reply.text);
  assert.ok(reply.json.next_action.client_secret);
  return reply.headers.get('transaction-id') ?? '';
}
const authenticate = async (id: string, outcome: string, user = 'bob'): Promise<Reply> =>
  post(`/sandbox/transactions/${id}/authentication`, { outcome }, user);

test('a user gets a card without an operator, as often as it is asked for, and shares it with others', async () => {
  refused(
    await post('/api/v2/transactions', purchaseOf('latte', undefined, { reference: 'pm_card_mastercard' })),
    422,
    'Invalid payment reference.',
  );
  for (let n = 0; n < 2; n++)
    assert.deepEqual((await give('pm_card_mastercard')).json, { data: { reference: 'pm_card_mastercard' } });
  assert.equal((await give('pm_card_mastercard', 'cat')).status, 200);
  for (const user of ['bob', 'cat']) {
    const reply = await post(
      '/api/v2/transactions',
      purchaseOf('latte', undefined, { reference: 'pm_card_mastercard' }),
      user,
    );
    assert.equal(reply.status, 201, reply.text);
  }
  refused(await give('card_of_somebody'), 422, 'reference must be a test card, such as pm_card_visa.');
  refused(
    await service.ask('POST', '/sandbox/payment-methods', {
      token: await service.clientToken(),
      body: { reference: 'pm_card_visa' },
    }),
    403,
    'Forbidden.',
  );
});

test('a buyer authenticates: the purchase is charged once, and the first outcome stands', async () => {
  const id = await challenged(CHALLENGED);
  refused(await authenticate(id, 'succeeded', 'ann'), 404, 'transaction not found');
  refused(await authenticate(id, 'maybe'), 422, 'outcome must be succeeded or failed');
  for (const outcome of ['succeeded', 'succeeded', 'failed'])
    assert.deepEqual((await authenticate(id, outcome)).json, { data: { transaction_id: id, outcome: 'charged' } });
  const shown = await eventually(async () => {
    const reply = await get(`/api/v2/transactions/${id}`);
    return reply.status === 200 ? reply : undefined;
  });
  assert.equal(shown.json.data.status, 'charged');
  const types = (await service.events.read(`transaction-${id}`)).map(({ type }) => type);
  assert.deepEqual(types, ['GiftsPurchased', 'ChargeStarted', 'PaymentAuthenticationRequired', 'PaymentCharged']);
});

test('a buyer who fails, and one whose bank refuses afterwards, are told why', async () => {
  for (const [reference, outcome, code] of [
    [CHALLENGED, 'failed', 'authentication_required'],
    [CHALLENGED_IN_VAIN, 'succeeded', 'insufficient_funds'],
  ] as const) {
    const id = await challenged(reference);
    assert.equal((await authenticate(id, outcome)).json.data.outcome, 'declined');
    const declined = await eventually(async () => {
      const reply = await get(`/api/v2/transactions/${id}`);
      return reply.json.error === 'Payment declined.' ? reply : undefined;
    });
    assert.equal(declined.headers.get('decline-code'), code, reference);
  }
});

test('a purchase that waits for nobody is refused', async () => {
  const { json } = await post(
    '/api/v2/transactions',
    purchaseOf('latte', undefined, { reference: 'pm_card_mastercard' }),
  );
  refused(await authenticate(json.data.id as string, 'succeeded'), 409, 'this purchase does not wait for its buyer.');
  refused(await authenticate('0'.repeat(32), 'succeeded'), 404, 'transaction not found');
});

test.run();
