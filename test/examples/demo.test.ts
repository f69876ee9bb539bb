import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { faultCollector } from '../../src/import/faults.js';
import type { ArrayName, FileArrays } from '../../src/import/file.js';
import { checkShapes } from '../../src/import/shapes.js';
import { normalisePhoneNumber } from '../../src/domain/phoneNumber.js';

const test = suite('examples/demo.json');

const demo = JSON.parse(readFileSync('examples/demo.json', 'utf8')) as {
  readonly [A in ArrayName]: readonly FileArrays[A][];
};

function ids(entries: readonly { readonly id: string }[]): Set<string> {
  return new Set(entries.map(({ id }) => id));
}

test('has the shape of an import file', async () => {
  const faults = faultCollector();
  await checkShapes(demo, faults);
  assert.equal(faults.all(), []);
});

test('is large enough to look like a shop', () => {
  const least = {
    merchants: 12,
    brands: 15,
    stores: 60,
    products: 80,
    categories: 12,
    users: 20,
    clients: 2,
    payment_methods: 5,
    voucher_codes: 10,
  } as const;
  for (const [array, count] of Object.entries(least)) assert.ok(demo[array as ArrayName].length >= count, array);
});

test('every id stands once, and whatever is named is there', () => {
  for (const array of [
    'integrations',
    'merchants',
    'brands',
    'stores',
    'segments',
    'products',
    'categories',
    'users',
    'clients',
  ] as const) {
    assert.is(ids(demo[array]).size, demo[array].length, array);
  }
  const [merchants, integrations, brands, segments, products, users] = [
    demo.merchants,
    demo.integrations,
    demo.brands,
    demo.segments,
    demo.products,
    demo.users,
  ].map(ids);
  const known = (names: readonly string[] | undefined, all: Set<string> | undefined): boolean =>
    (names ?? []).every((name) => all?.has(name));
  for (const brand of demo.brands) {
    assert.ok(known([brand.merchant_id], merchants) && known([brand.integration_id ?? ''], integrations), brand.id);
    assert.ok(known(brand.consolidated_products, products) && known(brand.visible_to, users), brand.id);
  }
  for (const store of demo.stores) assert.ok(known([store.brand_id], brands), store.id);
  for (const product of demo.products)
    assert.ok(known([product.brand_id], brands) && known(product.segments, segments), product.id);
  for (const category of demo.categories) assert.ok(known(category.products, products), category.id);
  for (const method of demo.payment_methods) assert.ok(known(method.users, users), method.reference);
  for (const client of demo.clients) assert.ok(known(client.users, users), client.id);
  for (const code of demo.voucher_codes) assert.ok(known([code.segment_id], segments), code.code);
});

test('stores stand in the United Kingdom, each with a postcode', () => {
  for (const { id, longitude, latitude, postcode } of demo.stores) {
    assert.ok(longitude > -8.2 && longitude < 1.8 && latitude > 49.9 && latitude < 60.9, id);
    assert.match(postcode ?? '', /^[A-Z]{1,2}\d[A-Z\d]? \d[A-Z]{2}$/, id);
  }
});

test('reaches no real person, and has no password that looks real', () => {
  for (const { id, phone_number: phone, password, username } of demo.users) {
    if (phone !== undefined) assert.match(normalisePhoneNumber(phone) ?? '', /^\+447700900\d{3}$/);
    assert.is(password, `demo-${id}`);
    assert.ok(username.endsWith('.example'));
  }
});

test('has something of every kind', () => {
  const has = <T>(entries: readonly T[], test: (entry: T) => unknown): void =>
    assert.ok(
      entries.some((entry) => test(entry)),
      test.toString(),
    );
  for (const type of ['qr', 'alpha/qr', 'alpha/pin']) has(demo.segments, ({ voucherType }) => voucherType === type);
  for (const id of ['1', '2', '3', '4', '5', '6', '7', '8'])
    has(demo.brands, ({ integration_id: used }) => used === id);
  has(demo.brands, ({ consolidated }) => consolidated === 1);
  has(demo.brands, ({ visible_to: visible }) => visible !== undefined);
  has(demo.brands, ({ active }) => active === false);
  has(demo.products, ({ active }) => active === false);
  has(demo.products, ({ segments }) => segments?.length === 0);
  has(
    demo.users,
    (user) => user.merchant_id === undefined && user.phone_number !== undefined && user.device_tokens === undefined,
  );
  has(
    demo.users,
    (user) => user.merchant_id === undefined && user.phone_number === undefined && user.device_tokens !== undefined,
  );
  has(demo.users, ({ permissions }) => permissions?.join() === 'redeem');
  has(demo.users, ({ permissions }) => permissions?.length === 2);
  has(demo.users, ({ roles }) => roles?.includes('support'));
  has(demo.users, ({ roles }) => roles?.includes('auditor'));
  has(demo.users, ({ active }) => active === false);
  has(demo.clients, ({ users }) => users === undefined);
  has(demo.clients, ({ users }) => users !== undefined);
  has(demo.payment_methods, ({ reference }) => reference.includes('chargeDeclined'));
  has(demo.payment_methods, ({ kind, prepaid }) => kind === 'wallet' && prepaid !== true);
  has(demo.payment_methods, ({ prepaid, top_ups: topUps }) => prepaid === true && (topUps?.length ?? 0) > 0);
});

test.run();
