import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Brand, CatalogueKind, CatalogueKinds, Product, Store } from '../../../src/domain/catalogue.js';
import type { EventStore, RecordedEvent } from '../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { CatalogueDocument } from '../../../src/projections/catalogue/catalogue.js';
import { catalogueState } from '../../../src/projections/catalogue/state.js';
import { type PolledCatalogueView, openCatalogueView } from '../../../src/projections/catalogue/view.js';
import type { ReadModel } from '../../../src/runtime/readmodels/readModel.js';
import { followers } from '../../../src/runtime/supervision/followers.js';
import { catalogueOf } from '../../support/fixtures/catalogue.js';
import { failureOf } from '../../support/fixtures/importFile.js';
import { silent } from '../../support/fixtures/projecting.js';
import { until } from '../../support/assertions/until.js';

const brand = (id: string, more: Partial<Brand> = {}): Brand => ({
  id,
  name: id,
  merchant_id: 'm1',
  integration_id: null,
  consolidated: 0,
  consolidated_products: [],
  description: '',
  image_url: '',
  active: true,
  visible_to: null,
  ...more,
});
const product = (id: string, more: Partial<Product> = {}): Product => ({
  id,
  brand_id: 'b1',
  name: id,
  description: '',
  sale_price: 1,
  image_url: '',
  active: true,
  segments: [],
  valid_days: 365,
  ...more,
});
const store = (id: string, more: Partial<Store> = {}): Store => ({
  id,
  brand_id: 'b1',
  name: id,
  address: '',
  postcode: '',
  longitude: 0,
  latitude: 0,
  ...more,
});
const position = (at: number): string => String(at).padStart(8, '0');
const document = <K extends CatalogueKind>(
  entry: K,
  value: CatalogueKinds[K],
  changed: number,
  more: { retired?: boolean; added?: number } = {},
): CatalogueDocument =>
  ({
    entry,
    added: position(more.added ?? changed),
    changed: position(changed),
    retired: more.retired ?? false,
    value,
  }) as CatalogueDocument;

/** A read model in memory that answers the view's queries; `written` is how far its projection's checkpoint is. */
interface FakeModel {
  failing: Error | undefined;
  readonly documents: Map<string, CatalogueDocument>;
  written: number;
  edition: string;
  queries: number;
  put(...changed: CatalogueDocument[]): void;
  readonly model: ReadModel<CatalogueDocument>;
  /** The log, with events that the model need not have. */
  readonly logged: RecordedEvent[];
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  /** Streams whose documents are out of service. */
  readonly broken: string[];
}

function fakeModel(): FakeModel {
  const documents = new Map<string, CatalogueDocument>();
  const logged: RecordedEvent[] = [];
  const self: FakeModel = {
    logged,
    broken: [],
    events: {
      read: async (stream) => logged.filter((event) => event.stream === stream),
      async *readAll(after = '') {
        const events = logged.filter((event) => event.position > after);
        const last = events.at(-1);
        if (last !== undefined) yield { events, position: last.position, caughtUp: true };
      },
    },
    failing: undefined,
    documents,
    written: 0,
    edition: '1/0',
    queries: 0,
    put(...changed): void {
      for (const one of changed) documents.set(`${one.entry}-${one.value.id}`, one);
    },
    model: {
      async find({ where = {}, sort = [], limit = Infinity }) {
        self.queries += 1;
        if (self.failing !== undefined) throw self.failing;
        const [[field, direction]] = sort as [['changed' | 'added', number]];
        const { gt } = where[field] as { gt: string };
        const found = [...documents]
          .filter(([, body]) => body[field] > gt)
          .toSorted(([, left], [, right]) => (left[field] < right[field] ? -direction : direction));
        return found.slice(0, limit).map(([id, body]) => ({ id, body }));
      },
      outOfService: async () => self.broken,
      edition: () => self.edition,
      reached: async (at: string) => at <= position(self.written),
      folded: async () => (self.written === 0 ? undefined : position(self.written)),
      get: () => Promise.reject(new Error('not asked for')),
      getMany: () => Promise.reject(new Error('not asked for')),
    },
  };
  return self;
}

const views: PolledCatalogueView[] = [];
function open(fake: FakeModel, options: Partial<Parameters<typeof openCatalogueView>[0]> = {}): PolledCatalogueView {
  const view = openCatalogueView({
    model: fake.model,
    events: fake.events,
    pollMs: 60_000,
    followers: followers({ logger: silent }),
    ...options,
  });
  views.push(view);
  return view;
}

const loggerOf = (told: string[]) =>
  pino({ level: 'info' }, { write: (line: string) => void told.push((JSON.parse(line) as { msg: string }).msg) });

const test = suite('projections/catalogueView');

test.after.each(async () => {
  for (const view of views.splice(0)) await view.close();
});

const changedEvent = (stream: string, type: string, at: number, data: object): RecordedEvent =>
  ({ stream, type, position: position(at), data }) as RecordedEvent;

test('reads on in the log what the model lacks, once, and keeps it when the model comes to it', async () => {
  const fake = fakeModel();
  fake.put(document('product', product('p1'), 1));
  fake.written = 1;
  fake.logged.push(
    changedEvent('product-p1', 'ProductAdded', 1, product('p1')),
    changedEvent('product-p1', 'ProductChanged', 2, { active: false }),
    changedEvent('product-p2', 'ProductAdded', 3, product('p2')),
    changedEvent('product-p2', 'ProductChanged', 4, { sale_price: 7 }),
  );
  const view = open(fake);
  await view.refresh();
  assert.is(view.current().products.get('p1')?.active, true);
  await view.readOn();
  const { products } = view.current();
  assert.equal([products.get('p1')?.active, products.get('p2')?.sale_price], [false, 7]);
  fake.put(document('product', product('p2', { sale_price: 1 }), 3));
  fake.written = 3;
  await view.refresh();
  assert.is(view.current().products.get('p2')?.sale_price, 7);
  fake.logged.push(changedEvent('product-p2', 'ProductRetired', 5, { reason: 'pruned' }));
  await view.readOn();
  assert.ok(view.current().retired('product', 'p2'));
  fake.edition = '2/0';
  await view.refresh();
  assert.not.ok(view.current().retired('product', 'p2'), 'a build that lacks it');
  await view.readOn();
  assert.ok(view.current().retired('product', 'p2'));
});

test('an entry that can’t be folded leaves refusals open', async () => {
  const fake = fakeModel();
  fake.logged.push(changedEvent('product-p1', 'ProductChanged', 1, { active: false }));
  const view = open(fake);
  assert.instance(await failureOf(view.readOn()), UnavailableError);
});

test('an entry whose document is out of service is read from its stream, as far as that can be folded', async () => {
  const fake = fakeModel();
  fake.put(document('product', product('p1'), 1));
  fake.logged.push(changedEvent('product-p1', 'ProductAdded', 1, product('p1')));
  fake.written = 1;
  const view = open(fake);
  await view.refresh();
  fake.documents.delete('product-p1');
  fake.logged.push(changedEvent('product-p1', 'ProductRetired', 2, { reason: 'pruned' }));
  fake.logged.push(changedEvent('product-p2', 'ProductChanged', 3, { active: true }));
  fake.broken.push('product-p1', 'product-p2');
  fake.edition = '1/1';
  await view.refresh();
  assert.ok(view.current().retired('product', 'p1'), 'nobody buys it any more');
  assert.equal([...view.current().products.keys()], ['p1']);
  fake.logged.push(changedEvent('product-p1', 'ProductAdded', 4, product('p1', { sale_price: 7 })));
  await view.refresh();
  assert.is(view.current().products.get('p1')?.sale_price, 7, 'no edition tells of later events');
  fake.broken.length = 0;
  fake.logged.push(changedEvent('product-p1', 'ProductChanged', 5, { sale_price: 8 }));
  await view.refresh();
  assert.is(view.current().products.get('p1')?.sale_price, 7, 'in service again, it is read from the read model');
});

test('the catalogue is unavailable until it has been read, be it empty', async () => {
  const fake = fakeModel();
  const view = open(fake);
  assert.throws(
    () => view.current(),
    (error: unknown) => error instanceof UnavailableError,
  );
  await view.refresh();
  assert.is(view.current().products.size, 0);
  assert.equal(view.current().storesOf('b1'), []);
  assert.equal(view.current().productsOf('b1'), []);
});

test('entries are in the order of imports, whatever changed since, in pages of any number', async () => {
  const fake = fakeModel();
  fake.put(
    ...Array.from({ length: 2_500 }, (_, n) =>
      document('category', { id: `c${n}`, name: '', image_url: '', featured: 0, products: [] }, n + 1),
    ),
  );
  fake.put(
    document('category', { id: 'c7', name: 'late', image_url: '', featured: 0, products: [] }, 9_000, { added: 8 }),
  );
  fake.written = 9_000;
  const view = open(fake);
  await view.refresh();
  assert.equal(
    [...view.current().categories.keys()],
    Array.from({ length: 2_500 }, (_, n) => `c${n}`),
  );
});

test('a later state is another object that shares what was not touched', async () => {
  const fake = fakeModel();
  fake.put(document('brand', brand('b1'), 1), document('product', product('p1'), 2), document('store', store('s1'), 3));
  fake.written = 3;
  const view = open(fake);
  await view.refresh();
  const first = view.current();
  await view.refresh();
  assert.is(view.current(), first);
  fake.put(document('product', product('p1', { name: 'new' }), 4, { added: 2 }), document('product', product('p2'), 5));
  fake.written = 5;
  await view.refresh();
  const second = view.current();
  assert.is(first.products.get('p1')?.name, 'p1');
  assert.is(first.products.size, 1);
  assert.equal(
    second.productsOf('b1').map(({ name }) => name),
    ['new', 'p2'],
  );
  assert.is(second.stores, first.stores);
});

test('repaired and removed documents show once the edition has changed', async () => {
  const fake = fakeModel();
  fake.put(document('product', product('p1', { name: 'falsified' }), 1), document('product', product('p2'), 2));
  fake.written = 2;
  const view = open(fake);
  await view.refresh();
  fake.put(document('product', product('p1'), 1));
  fake.documents.delete('product-p2');
  await view.refresh();
  assert.is(view.current().products.get('p1')?.name, 'falsified', 'no event tells of it');
  fake.edition = '1/1';
  await view.refresh();
  assert.equal(
    [...view.current().products.values()].map(({ name }) => name),
    ['p1'],
  );
});

test('the view reads the read model by itself', async () => {
  const fake = fakeModel();
  const view = open(fake, { pollMs: 5 });
  fake.put(document('product', product('p1'), 1));
  for (let turn = 0; turn < 200; turn++) {
    await sleep(5);
    try {
      if (view.current().products.has('p1')) break;
    } catch (error) {
      assert.instance(error, UnavailableError);
    }
  }
  assert.ok(view.current().products.has('p1'));
});

test('simultaneous refreshes share one read that starts after them', async () => {
  const fake = fakeModel();
  fake.put(document('brand', brand('b1'), 1));
  const view = open(fake);
  await view.refresh();
  fake.queries = 0;
  const early = view.refresh();
  // The first has started: it may not find what comes now.
  await Promise.resolve();
  fake.put(document('brand', brand('b2'), 2));
  const requested = Array.from({ length: 500 }, () => view.refresh());
  await Promise.all(requested);
  assert.ok(view.current().brands.has('b2'));
  assert.is(fake.queries, 2, 'one look for the first, one for all others');
  await early;
});

test('a document written after one of a higher position is not missed', async () => {
  const fake = fakeModel();
  fake.put(document('product', product('p9'), 9));
  fake.written = 0;
  const view = open(fake);
  // However often it has looked since.
  for (let looks = 0; looks < 3; looks++) await view.refresh();
  fake.put(document('product', product('p5'), 5));
  fake.written = 9;
  await view.refresh();
  assert.equal([...view.current().products.keys()], ['p5', 'p9'], 'in the order of imports');
  fake.put(document('product', product('p12'), 12));
  await view.refresh();
  fake.put(document('product', product('p11'), 11));
  fake.written = 12;
  await view.refresh();
  assert.equal([...view.current().products.keys()], ['p5', 'p9', 'p11', 'p12']);
});

test('nothing is read again once the projection has reached the highest change', async () => {
  const fake = fakeModel();
  fake.put(...Array.from({ length: 1_500 }, (_, n) => document('product', product(`p${n}`), n + 1)));
  fake.written = 1_500;
  const view = open(fake);
  await view.refresh();
  const before = fake.queries;
  await view.refresh();
  await view.refresh();
  assert.is(fake.queries - before, 2);
});

test('an older document never replaces a newer one', async () => {
  const state = catalogueState();
  await state.apply([document('product', product('p1', { name: 'new' }), 5)]);
  assert.is(await state.apply([document('product', product('p1', { name: 'old' }), 4)]), undefined);
  assert.is(state.catalogue().products.get('p1')?.name, 'new');
});

test('a failure leaves the state in use, is logged once, and reaches the caller of refresh', async () => {
  const fake = fakeModel();
  fake.put(document('product', product('p1'), 1));
  const told: string[] = [];
  const view = open(fake, { pollMs: 2, followers: followers({ logger: loggerOf(told) }) });
  await view.refresh();
  fake.failing = new UnavailableError('down');
  assert.is(await failureOf(view.refresh()), fake.failing);
  await until(() => told.length >= 1, 'the log');
  await sleep(20);
  assert.is(view.current().products.size, 1);
  fake.failing = undefined;
  await until(() => told.length >= 2, 'the log');
  assert.equal(told, ['catalogue: waits for an engine, trying on', 'catalogue: works again']);
  await view.close();
  const queries = fake.queries;
  await view.refresh();
  assert.is(fake.queries, queries, 'a closed view reads no more');
});

test('a read model that is still being built is waited for in silence; other failures are logged', async () => {
  const fake = fakeModel();
  const told: string[] = [];
  fake.failing = new UnavailableError('still being built');
  const view = open(fake, { pollMs: 2, followers: followers({ logger: loggerOf(told) }) });
  await until(() => fake.queries > 1, 'it to go on looking');
  assert.equal(told, []);
  fake.failing = new Error('a mistake');
  await until(() => told.length >= 1, 'the log');
  assert.is(told[0], 'catalogue: failed, starting again');
  fake.failing = undefined;
  await view.refresh();
  assert.is(view.current().products.size, 0);
});

test("gifts are valid for the brand's merchant, and for merchants whose brands list the product", async () => {
  const catalogue = await catalogueOf({
    merchant: ['m1', 'm2', 'm3'].map((id) => ({ id, name: id, adjustment_codes: [] })),
    brand: [
      brand('b1'),
      brand('b2', { merchant_id: 'm2', consolidated_products: ['p1'] }),
      brand('b3', { merchant_id: 'm3' }),
    ],
    product: [product('p1'), product('p2')],
  });
  const valid = (product_id: string, brand_id: string): string[] =>
    ['m1', 'm2', 'm3', 'm4'].filter((id) => catalogue.validFor({ product_id, brand_id }, id));
  assert.equal(valid('p1', 'b1'), ['m1', 'm2']);
  assert.equal(valid('p2', 'b1'), ['m1']);
  assert.equal(valid('p1', 'b3'), ['m1', 'm2'], "today's catalogue says whose the product is");
  assert.equal(valid('unknown', 'b3'), ['m3'], 'else the gift does');
});

test('audiences decide who may see a brand and buy a product', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b1'), brand('b2', { visible_to: ['u1'] }), brand('b3', { active: false })],
    product: [
      product('p1'),
      product('p2', { brand_id: 'b2' }),
      product('p3', { brand_id: 'b3' }),
      product('p4', { active: false }),
      product('p5', { brand_id: 'gone' }),
    ],
  });
  const sellable = (userId: string | undefined): string[] =>
    [...catalogue.products.values()].filter((one) => catalogue.sellable(one, userId)).map(({ id }) => id);
  assert.equal(sellable('u1'), ['p1', 'p2']);
  assert.equal(sellable('u2'), ['p1']);
  assert.equal(sellable(undefined), ['p1']);
  assert.equal(
    catalogue.productsOf('b1').map(({ id }) => id),
    ['p1'],
  );
});

test('retired entries are known to history but in no list; no gift is valid for their merchant', async () => {
  const state = catalogueState();
  await state.apply([
    document('merchant', { id: 'm1', name: '', adjustment_codes: [] }, 1, { retired: true }),
    document('merchant', { id: 'm2', name: '', adjustment_codes: [] }, 2),
    document('brand', brand('b1'), 3),
    document('brand', brand('b2', { merchant_id: 'm2', active: false, consolidated_products: ['p9'] }), 4, {
      retired: true,
    }),
    document('store', store('s1'), 5, { retired: true }),
    document('store', store('s2'), 6),
    document('category', { id: 'c1', name: '', image_url: '', featured: 0, products: [] }, 7, { retired: true }),
    document('segment', { id: 'g1', name: '', voucherType: 'qr', expiry: 1, configuration: {} }, 8, { retired: true }),
    document('integration', { id: '1', name: '' }, 9, { retired: true }),
  ]);
  const catalogue = state.catalogue();
  assert.equal(
    [catalogue.brands.size, catalogue.segments.size, catalogue.integrations.size, catalogue.merchants.size],
    [2, 1, 1, 2],
  );
  assert.equal(
    [[...catalogue.stores.keys()], catalogue.storesOf('b1').map(({ id }) => id), catalogue.categories.size],
    [['s2'], ['s2'], 0],
  );
  assert.equal(
    [
      catalogue.retired('segment', 'g1'),
      catalogue.retired('store', 's1'),
      catalogue.retired('store', 's2'),
      catalogue.retired('brand', 'b9'),
    ],
    [true, true, false, false],
  );
  assert.not(catalogue.validFor({ product_id: 'p1', brand_id: 'b1' }, 'm1'));
  assert.ok(catalogue.validFor({ product_id: 'p1', brand_id: 'b2' }, 'm2'), 'a retired brand honours its own gifts');
  assert.not(catalogue.validFor({ product_id: 'p9', brand_id: 'b1' }, 'm2'), 'but accepts no others');
  assert.not(catalogue.visible(catalogue.brands.get('b2') as Brand, undefined));
});

test('10,000 products and 100,000 stores are loaded without holding the event loop', async () => {
  const documents: CatalogueDocument[] = [];
  for (let n = 0; n < 10_000; n++)
    documents.push(document('product', product(`p${n}`, { brand_id: `b${n % 100}` }), documents.length + 1));
  for (let n = 0; n < 100_000; n++)
    documents.push(document('store', store(`s${n}`, { brand_id: `b${n % 100}` }), documents.length + 1));
  const state = catalogueState();
  let turns = 0;
  let loaded = false;
  const turn = (): void => {
    turns++;
    if (!loaded) setImmediate(turn);
  };
  setImmediate(turn);
  const first = await state.apply(documents);
  loaded = true;
  const second = await state.apply([document('store', store('s5', { brand_id: 'b1' }), 999_999, { added: 10_006 })]);
  assert.is(first?.storesOf('b0').length, 1_000);
  assert.is(second?.storesOf('b1').length, 1_001);
  assert.is(second?.storesOf('b5').length, 999);
  assert.ok(turns > 1, 'the event loop turns meanwhile');
});

test.run();
