import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { AccountDocument } from '../../src/projections/accounts.js';
import type { CatalogueDocument } from '../../src/projections/catalogue/catalogue.js';
import { isOwnerActive } from '../../src/deliveries/webhooks.js';

const test = suite('projections/webhookOwners');

const documents: Readonly<Record<string, object>> = {
  'client-shop': { entry: 'client', active: true },
  'client-off:1': { entry: 'client', active: false },
  'merchant-coffee': { entry: 'merchant', retired: false },
  'merchant-closed': { entry: 'merchant', retired: true },
};
const models = {
  accounts: { get: async (id: string) => documents[id] as AccountDocument | undefined },
  catalogue: { get: async (id: string) => documents[id] as CatalogueDocument | undefined },
};

for (const [owner, active] of [
  ['client:shop', true],
  ['client:off:1', false],
  ['client:coffee', false],
  ['merchant:coffee', true],
  ['merchant:closed', false],
  ['merchant:shop', false],
] as const)
  test(`${owner} ${active ? 'may' : 'may not'} be told anything`, async () =>
    assert.is(await isOwnerActive(models, owner), active));

test.run();
