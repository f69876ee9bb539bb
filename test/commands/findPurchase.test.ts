import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { findPurchase, purchaseGifts } from '../../src/commands/purchaseGifts.js';
import { transactionStream } from '../../src/domain/purchase/events.js';
import { memoryKeys } from '../support/engines/memoryKeys.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';
import { context, installation, wanted } from '../support/fixtures/purchasing.js';
import { refusal } from '../support/assertions/rejects.js';

const test = suite('repeated purchases');

test('finds a repeated command’s purchase in the log, and refuses another body', async () => {
  const { deps, events } = installation();
  const mine = context({ bodyHash: 'a' });
  assert.equal(await findPurchase(deps, mine), undefined);
  const { transactionId } = await purchaseGifts(deps, 'ann', mine, wanted);
  const again = await findPurchase(deps, mine);
  assert.deepEqual([again?.transactionId, again?.replayed], [transactionId, true]);
  assert.equal((await purchaseGifts(deps, 'ann', mine, wanted)).transactionId, transactionId);
  await assert.rejects(findPurchase(deps, { ...mine, bodyHash: 'b' }), refusal('idempotency_key_reused'));
  assert.deepEqual(
    events.log.map(({ stream, type }) => [stream, type]),
    [[transactionStream(transactionId), 'GiftsPurchased']],
  );
});

test('stores no hash of a body with numbers that HASH_KEY alone could make, and refuses another body', async () => {
  const { deps, events } = installation();
  const mine = context({ bodyHash: 'a' });
  const request = { ...wanted, message: '', receivers: [{}, { phone_number: '07700 900123' }] };
  const { transactionId } = await purchaseGifts(deps, 'ann', mine, request);
  const [stored] = await events.read(transactionStream(transactionId));
  assert.match(stored?.metadata.bodyHash ?? '', /^[\w-]{22}$/);
  assert.equal((await findPurchase(deps, mine))?.transactionId, transactionId);
  assert.equal((await purchaseGifts(deps, 'ann', mine, request)).replayed, true);
  await assert.rejects(findPurchase(deps, { ...mine, bodyHash: 'b' }), refusal('idempotency_key_reused'));
});

test('takes a repeat for the same request once the purchase’s data key is gone', async () => {
  const keys = memoryKeys();
  const { deps, events } = installation();
  const erasable = { ...deps, subjects: memorySubjects(keys) };
  const mine = context({ bodyHash: 'a' });
  const { transactionId } = await purchaseGifts(erasable, 'ann', mine, wanted);
  await keys.remove([...keys.rows.keys()]);
  const later = { ...deps, subjects: memorySubjects(keys) };
  assert.equal((await findPurchase(later, { ...mine, bodyHash: 'b' }))?.transactionId, transactionId);
  assert.equal(events.log.length, 1);
});

test('a repeat is answered as the purchase was at an event', async () => {
  const { deps, events } = installation();
  const mine = context();
  const { transactionId } = await purchaseGifts(deps, 'ann', mine, wanted);
  events.given(transactionStream(transactionId), {
    type: 'PaymentCharged',
    data: { amount: 350, provider: 'p', charge_id: 'ch_1' },
  });
  events.given(transactionStream(transactionId), {
    type: 'DisputeOpened',
    data: { provider: 'p', dispute_id: 'd', amount: 350, reason: 'fraudulent' },
  });
  const [bought, charged, disputed] = events.log;
  for (const [upTo, status, length] of [
    [bought?.position, 'pending', 1],
    [charged?.position, 'charged', 2],
    [undefined, 'charged', 3],
    ['9'.repeat(16), 'charged', 3],
  ] as const) {
    const found = await findPurchase(deps, mine, upTo);
    assert.deepEqual([found?.state.status, found?.history.length, found?.replayed], [status, length, true]);
    assert.equal(found?.position, [bought, charged, disputed][length - 1]?.position);
  }
});

test('a body without numbers and message is compared as it is', async () => {
  const { deps, events } = installation();
  const mine = context({ bodyHash: 'a' });
  const { transactionId } = await purchaseGifts(deps, 'ann', mine, { ...wanted, message: '', receivers: [{}] });
  assert.equal(events.log[0]?.metadata.bodyHash, 'a');
  assert.equal((await findPurchase(deps, mine))?.transactionId, transactionId);
  await assert.rejects(findPurchase(deps, { ...mine, bodyHash: 'b' }), refusal('idempotency_key_reused'));
  const { bodyHash: _, ...without } = mine;
  await assert.rejects(findPurchase(deps, without), refusal('idempotency_key_reused'));
});

test('compares no hash where a personal purchase, or its repeat, has none', async () => {
  const { deps } = installation();
  const { bodyHash, ...without } = context({ bodyHash: 'a' });
  await purchaseGifts(deps, 'ann', without, wanted);
  assert.equal((await findPurchase(deps, without))?.replayed, true);
  await assert.rejects(findPurchase(deps, { ...without, bodyHash: 'a' }), refusal('idempotency_key_reused'));
  const hashed = context({ bodyHash: 'a' });
  await purchaseGifts(deps, 'ann', hashed, wanted);
  const { bodyHash: _, ...repeat } = hashed;
  assert.equal(bodyHash, 'a');
  await assert.rejects(findPurchase(deps, repeat), refusal('idempotency_key_reused'));
});

test.run();
