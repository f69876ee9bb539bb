/** A small whole import file, and what it takes to import it, for tests. */
import { type ImportOptions, type ImportReport, importCatalogue } from '../../src/import/importCatalogue.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import type { EventStore } from '../../src/ports/eventStore.js';

/** The key that these tests hash with. */
export const testHash = keyedHash(Buffer.alloc(32, 7));

/** A valid hash, so that tests need not wait for one. It is no known password's. */
export const PASSWORD_HASH =
  '$argon2id$v=19$m=19456,t=2,p=1$c29tZXNhbHRzb21lc2FsdA$c29tZWhhc2hzb21laGFzaHNvbWVoYXNoc29tZWhhc2g';

/** One of every kind, each referring to others. */
export function wholeFile() {
  return {
    integrations: [{ id: '1', name: 'Till' }],
    merchants: [{ id: 'm1', name: 'Merchant', adjustment_codes: ['A', 'B'] }],
    brands: [
      {
        id: 'b1',
        name: 'Brand',
        merchant_id: 'm1',
        integration_id: '1',
        visible_to: ['u1'],
        consolidated_products: ['p2'],
      },
      { id: 'b2', name: 'Both', merchant_id: 'm1', consolidated: 1 },
    ],
    stores: [{ id: 's1', brand_id: 'b1', name: 'Store', longitude: -0.1, latitude: 51.5 }],
    segments: [
      { id: 'g1', name: 'Segment', voucherType: 'qr', expiry: 30, configuration: { width: 2, deep: [{ ok: true }] } },
    ],
    products: [
      { id: 'p1', brand_id: 'b1', name: 'Coffee', sale_price: 250, segments: ['g1'] },
      { id: 'p2', brand_id: 'b2', name: 'Tea', sale_price: 0, valid_days: 1 },
    ],
    categories: [{ id: 'c1', name: 'Drinks', featured: 1, products: ['p1', 'p2'] }],
    users: [
      { id: 'u1', username: 'Ann', password_hash: PASSWORD_HASH, phone_number: '07700 900001' },
      {
        id: 'u2',
        username: 'Bob',
        password_hash: PASSWORD_HASH,
        phone_number: '07700 900002',
        merchant_id: 'm1',
        permissions: ['redeem'],
        roles: ['support'],
      },
    ],
    clients: [{ id: 'app', secret_hash: PASSWORD_HASH, name: 'App', users: ['u1'] }],
    payment_methods: [
      { reference: 'card_1', kind: 'card', users: ['u1'], customer: 'cus_1' },
      { reference: 'w1', kind: 'wallet', users: ['u1', 'u2'], prepaid: true, top_ups: [{ id: 't1', amount: 500 }] },
    ],
    voucher_codes: [
      { segment_id: 'g1', code: 'CODE-1', pin: '1234' },
      { segment_id: 'g1', code: 'CODE-2' },
    ],
  };
}

/** Any import file. */
export type AnyFile = Record<string, Record<string, unknown>[]>;

/** The whole file, changed. */
export function fileWith(change: (file: AnyFile) => void): AnyFile {
  const file = wholeFile() as unknown as AnyFile;
  change(file);
  return file;
}

/** Imports as the tests do. */
export async function importInto(
  events: EventStore,
  file: unknown,
  options: Partial<ImportOptions> = {},
): Promise<ImportReport> {
  return importCatalogue({ events, hash: testHash, now: () => '2026-03-01T10:00:00.000Z' }, file, {
    by: { user: 'cli:tester@host' },
    ...options,
  });
}

/** The error of what must fail. */
export async function failureOf(promise: Promise<unknown>): Promise<Error> {
  try {
    await promise;
  } catch (error) {
    return error as Error;
  }
  throw new Error('it succeeded');
}
