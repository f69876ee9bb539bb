import { test } from 'uvu';
import * as assert from 'uvu/assert';
import { lookUps } from '../../src/processors/lookUps.js';
import type { AccountDocument } from '../../src/projections/accounts.js';

test('payment methods and contacts come from the accounts, each of its own kind', async () => {
  const documents = new Map([
    ['paymentMethod-card', { entry: 'paymentMethod', kind: 'card' }],
    ['paymentMethod-odd', { entry: 'user' }],
    ['user-ann', { entry: 'user', name: 'Ann' }],
    ['user-odd', { entry: 'client' }],
  ]);
  const { paymentMethod, contact } = lookUps({ get: async (id) => documents.get(id) as unknown as AccountDocument | undefined });
  assert.is((await paymentMethod('card'))?.kind, 'card');
  assert.is((await contact('ann'))?.name, 'Ann');
  for (const found of [await paymentMethod('odd'), await paymentMethod('none'), await contact('odd'), await contact('none')]) assert.is(found, undefined);
});

test.run();
