import type { ArrayName, IdKind } from './file.js';

/** Fields that refer to other entries, and their kinds. A field holds one id or a list of ids. */
export const REFERENCES: { readonly [A in ArrayName]: Readonly<Record<string, IdKind>> } = {
  integrations: {},
  merchants: {},
  brands: {
    merchant_id: 'merchant',
    integration_id: 'integration',
    consolidated_products: 'product',
    visible_to: 'user',
  },
  stores: { brand_id: 'brand' },
  segments: {},
  products: { brand_id: 'brand', segments: 'segment' },
  categories: { products: 'product' },
  users: { merchant_id: 'merchant' },
  clients: { users: 'user' },
  payment_methods: { users: 'user' },
  voucher_codes: { segment_id: 'segment' },
};
