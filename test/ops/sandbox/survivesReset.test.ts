import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RESTORED_STREAM } from '../../../src/domain/restored.js';
import { type VoucherCodeEvent, voucherCodeAggregate, voucherCodeStream } from '../../../src/domain/voucherCode.js';
import { walletAggregate, type WalletEvent, walletStream } from '../../../src/domain/wallet.js';
import type { Aggregate, DomainEvent, Happened } from '../../../src/domain/decider.js';
import { forgetSubjects, namedSubjects } from '../../../src/ops/sandbox/forgetSubjects.js';
import { survivesReset } from '../../../src/ops/sandbox/survivesReset.js';
import { memoryKeys } from '../../support/engines/memoryKeys.js';

const test = suite('what a reset leaves');

function stateAfter<S, E extends DomainEvent>(aggregate: Aggregate<S, E>, stream: string, events: readonly E[]): S {
  let state = aggregate.initial;
  for (const event of events)
    if (survivesReset(stream, event.type)) state = aggregate.evolve(state, event as Happened<E>);
  return state;
}

test('keeps what imports wrote, and erasures, whole', () => {
  for (const stream of ['product-latte', 'user-ann', 'client-app', 'paymentMethod-x', 'username-1', 'phone-1'])
    assert.ok(survivesReset(stream, 'Anything'), stream);
  assert.ok(survivesReset(RESTORED_STREAM, 'LogRestored'));
  for (const stream of [
    'transaction-1',
    'gift-1',
    'notification-1',
    'webhookEndpoint-1',
    'parked-purchase',
    'access-2026-05-04',
    'log-tree',
    'treeHeads-1',
  ])
    assert.not(survivesReset(stream, 'Anything'), stream);
});

test('frees assigned codes, and gives wallets what was put in', () => {
  const code: readonly VoucherCodeEvent[] = [
    { type: 'VoucherCodeAdded', data: { segment_id: 's', code: 'C', pin: null } },
    { type: 'VoucherCodeChanged', data: { pin: '1' } },
    { type: 'VoucherCodeAssigned', data: { gift_id: 'g' } },
  ];
  const free = { status: 'free', segment_id: 's', code: 'C', pin: '1' };
  assert.equal(stateAfter(voucherCodeAggregate, voucherCodeStream('s', 'h'), code), free);
  const wallet: readonly WalletEvent[] = [
    { type: 'WalletToppedUp', data: { top_up_id: '1', amount: 500 } },
    { type: 'WalletDebited', data: { transaction_id: 't', amount: 300 } },
    { type: 'WalletToppedUp', data: { top_up_id: '2', amount: 100 } },
    { type: 'WalletCredited', data: { transaction_id: 't', amount: 300, cause: 'r' } },
    { type: 'WalletDebitRefused', data: { transaction_id: 'u', amount: 900 } },
  ];
  assert.equal(stateAfter(walletAggregate, walletStream('w'), wallet), { balance: 600, decided: undefined });
});

test('forgets the rows of the key store that no event names, for good', async () => {
  const keys = memoryKeys();
  const row = (letter: string) => ({ id: letter.repeat(22), lookup: letter.repeat(22), secret: letter });
  const rows = ['a', 'b', 'c', 'd'].map(row);
  await keys.add(rows);
  const named = namedSubjects();
  named.add(`username-${'a'.repeat(22)}`, '{}');
  named.add('user-ann', `{"x":1}`, `{"personal":{"subject":"${'b'.repeat(22)}","box":"${'d'.repeat(23)}"}}`);
  await forgetSubjects(keys, named);
  assert.equal(
    (await keys.page(undefined, 10)).map(({ secret }) => secret),
    ['a', 'b'],
  );
  await forgetSubjects(keys, named);
  assert.is((await keys.add([row('c')])).size, 0);
});

test.run();
