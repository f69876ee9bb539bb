import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { productSearch, type ProductSearch } from '../../../src/api/catalogue/search.js';
import type { Brand, Product } from '../../../src/domain/catalogue.js';
import type { Catalogue } from '../../../src/projections/catalogue/wholeCatalogue.js';
import { brand, catalogueOf, product } from '../../support/fixtures/catalogue.js';

const test = suite('search');

let demo: Catalogue;
let search: ProductSearch;

test.before(async () => {
  const file = JSON.parse(readFileSync('examples/demo.json', 'utf8')) as {
    brands: (Partial<Brand> & { id: string })[];
    products: Product[];
  };
  demo = await catalogueOf({
    brand: file.brands.map((entry) => brand(entry.id, entry)),
    product: file.products.map((entry) => product(entry.id, entry.brand_id, entry)),
  });
  search = productSearch();
});

const any = (): boolean => true;

async function found(text: string, catalogue = demo, accepts: (product: Product) => boolean = any): Promise<string[]> {
  return (await search.find(catalogue, text, accepts)).map(({ id }) => id);
}

test('a word of the name is found, in any case and with any accents', async () => {
  for (const text of [
    'creme brulee',
    'Crème Brûlée',
    'CREME BRÛLÉE',
    'crème  brulee!',
    'cre\u0300me bru\u0302le\u0301e',
  ]) {
    assert.equal(await found(text), ['creme-brulee'], text);
  }
  assert.equal(await found('tiramisu'), ['tiramisu']);
});

test('apostrophes of either kind make no difference', async () => {
  for (const text of ["autumn's", 'autumn’s', 'autumns']) assert.equal(await found(text), ['toffee-apple-latte'], text);
});

test('letters that are no base with an accent are spelled out', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: [product('p', 'b', { name: 'Smørrebrød, Straße und Œuvre' })],
  });
  for (const text of ['smorrebrod', 'strasse', 'oeuvre', 'SMØRREBRØD', 'Straße'])
    assert.equal(await found(text, catalogue), ['p'], text);
});

test('the beginning of a word is enough', async () => {
  assert.equal(await found('hot choc'), ['hot-chocolate']);
  assert.ok((await found('cin')).includes('cinema-two'));
});

test('typing errors are forgiven: a letter wrong, missing, too many, or two that changed places', async () => {
  assert.equal(await found('flat whote'), ['flat-white']);
  assert.equal(await found('flat wite'), ['flat-white']);
  assert.equal(await found('flaat whitte'), ['flat-white']);
  assert.equal(await found('bicyle servise'), ['bike-service']);
  assert.equal(await found('smotohie'), ['smoothie']);
});

test('a space or hyphen left out is forgiven, with another error too', async () => {
  for (const text of ['flatwhite', 'flat-white', 'Flatwhit', 'flatwihte'])
    assert.equal(await found(text), ['flat-white'], text);
  assert.equal(await found('thankyou card'), ['staff-thank-you']);
  assert.equal(await found('learntoride'), ['learn-to-ride']);
  assert.equal((await found('spaday for two'))[0], 'spa-day-two');
});

test('signs within a name, and the lack of them, make no difference', async () => {
  const names = [
    '7-Up',
    'AT&T card',
    'H & M',
    'M&M’s',
    'Coca-Cola',
    'Attic tour',
    'Upper 7',
    'Humming',
    'McDonald´s',
    'Ben & Jerry‘s',
    '3-in-1',
  ];
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: names.map((name) => product(name, 'b', { name })),
  });
  const first: [name: string, ...texts: string[]][] = [
    ['7-Up', '7up', '7-up', '7 up', '7Up'],
    ['AT&T card', 'att', 'AT&T', 'at t', 'att card'],
    ['H & M', 'hm', 'h&m', 'h & m'],
    ['M&M’s', 'mms', "M&M's", 'm&ms'],
    ['Coca-Cola', 'cocacola', 'coca cola', 'coca-cola', 'cocacla'],
    ['McDonald´s', 'mcdonalds', "McDonald's", 'mcdonald’s', 'McDonaldʼs'],
    ['Ben & Jerry‘s', 'ben&jerrys', "ben jerry's"],
    ['3-in-1', '3in1'],
  ];
  for (const [name, ...texts] of first)
    for (const text of texts) assert.is((await found(text, catalogue))[0], name, text);
});

test('a word within a name of a script without spaces is found', async () => {
  const names = ['星巴克咖啡券', '映画チケット', 'บัตรกำนัลกาแฟ', '스타벅스커피쿠폰', 'iPhone手机壳', '茶叶'];
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: names.map((name) => product(name, 'b', { name, description: 'x' })),
  });
  const only: [name: string, ...texts: string[]][] = [
    ['星巴克咖啡券', '咖啡', '星巴克', '咖啡券', '券', '星巴克 咖啡'],
    ['映画チケット', 'チケット', '映画', 'ﾁｹｯﾄ', '画'],
    ['บัตรกำนัลกาแฟ', 'กาแฟ', 'กำนัล'],
    ['스타벅스커피쿠폰', '커피', '쿠폰', '스타벅스'],
    ['iPhone手机壳', '手机', 'iphone', 'iPhone手机'],
    ['茶叶', '茶', '叶'],
  ];
  for (const [name, ...texts] of only)
    for (const text of texts) assert.equal(await found(text, catalogue), [name], text);
  assert.equal(await found('啤酒', catalogue), []);
});

test('the description and the name of the brand are searched too', async () => {
  assert.equal(await found('oatcakes'), ['whisky-flight']);
  assert.ok((await found('pennyfarthing')).includes('margherita'));
});

test('the best match comes first: the name before the description before the brand', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('plain'), brand('lemon', { name: 'Lemon' })],
    product: [
      product('brand', 'lemon', { name: 'Tart' }),
      product('text', 'plain', { name: 'Cake', description: 'With lemon' }),
      product('name', 'plain', { name: 'Lemon' }),
    ],
  });
  assert.equal(await found('lemon', catalogue), ['name', 'text', 'brand']);
});

test('what is spelled right comes before what is nearly so', async () => {
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: ['Toffee', 'Coffees', 'Coffee'].map((name) => product(name, 'b', { name })),
  });
  assert.equal(await found('coffee', catalogue), ['Coffee', 'Coffees', 'Toffee']);
});

test('all words must match where any product has them all; else those with most come first', async () => {
  assert.equal(await found('piza for two'), ['pizza-two']);
  const some = await found('gift for somebody who likes coffee beans');
  assert.is(some[0], 'coffee-beans');
});

test('decides how exact a match must be among the wanted products only', async () => {
  const names = { secret: 'Staff lunch', soup: 'Soup lunch', stuff: 'Stufs lunch' };
  const catalogue = await catalogueOf({
    brand: [brand('b')],
    product: Object.entries(names).map(([id, name]) => product(id, 'b', { name })),
  });
  const without =
    (...ids: string[]) =>
    ({ id }: Product): boolean =>
      !ids.includes(id);
  assert.equal(await found('staff lunch', catalogue), ['secret']);
  assert.equal(await found('staff lunch', catalogue, without('secret')), ['stuff'], 'with more errors');
  assert.equal(await found('staff lunch', catalogue, without('secret', 'stuff')), ['soup'], 'with one of the words');
});

test('what is in no product finds nothing, nor do signs alone', async () => {
  for (const text of ['mackerel', 'qqqqqqqq', '🎁', '!?', '" OR 1=1 --'.slice(0, 1), '\u0000', ''])
    assert.equal(await found(text), [], JSON.stringify(text));
});

test('any text is searched without complaint, by as many words as do good', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.oneof(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.string({ unit: 'binary', maxLength: 200 })),
      async (text) => {
        assert.ok(Array.isArray(await search.find(demo, text, any)));
      },
    ),
    { numRuns: 150 },
  );
  assert.equal(
    await found('tea two pot for leaf list twelve milk zzzzzz'),
    ['pot-of-tea'],
    'the ninth word is ignored',
  );
  assert.equal(await found(`${'x'.repeat(32)}y`), await found('x'.repeat(32)));
});

test('the index of a state is made once, also when many search at the same time', async () => {
  let read = 0;
  const counted = {
    ...demo,
    get products() {
      read++;
      return demo.products;
    },
  };
  await Promise.all([
    search.find(counted, 'tea', any),
    search.find(counted, 'coffee', any),
    search.find(counted, 'pizza', any),
  ]);
  await search.find(counted, 'tea', any);
  assert.is(read, 1);
});

test('another state has another index', async () => {
  const [before, after] = await Promise.all(
    ['Old', 'New'].map((name) => catalogueOf({ product: [product('p', 'gone', { name })] })),
  );
  assert.equal(await found('old', before), ['p']);
  assert.equal(await found('old', after), []);
  assert.equal(await found('new', after), ['p']);
});

test('10,000 products are indexed and searched in turns with other work', async () => {
  const syllables = ['ca', 'co', 'ke', 'li', 'mo', 'ta', 'ter', 'pan', 'ri', 'sel', 'do', 'fi'];
  const word = (seed: number): string =>
    [seed, seed * 7, Math.floor(seed / 5)].map((part) => syllables[part % syllables.length]).join('');
  const words = (seed: number, count: number): string =>
    Array.from({ length: count }, (_, index) => word(seed * 31 + index * 17)).join(' ');
  const products = Array.from({ length: 10_000 }, (_, index) =>
    product(`p${index}`, 'b', { name: words(index, 4), description: words(index + 1, 20) }),
  );
  const catalogue = await catalogueOf({ brand: [brand('b')], product: products });
  let turns = 0;
  let searching = true;
  const others = (async () => {
    while (searching) {
      await new Promise(setImmediate);
      turns++;
    }
  })();
  assert.ok((await found(words(3, 2), catalogue)).length > 0);
  const whileIndexing = turns;
  assert.ok(whileIndexing > 10, `other work had ${whileIndexing} turns`);
  await found('ca co ke li mo ta te pa', catalogue);
  searching = false;
  await others;
  assert.ok(turns - whileIndexing >= 8, 'a pause after every word');
});

test.run();
