import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pageOf, pageRequest, paginate, type Page, type PageContent } from '../../../src/api/representation/pages.js';

const test = suite('pages');

const ALL = Array.from({ length: 45 }, (_, index) => ({ index: index + 1 }));

function page(number: number, fields: Partial<PageContent> = {}): Page {
  const request = { page: number, perPage: fields.perPage ?? 20 };
  const total = fields.total ?? ALL.length;
  return paginate({
    publicUrl: 'https://gifts.example',
    path: '/api/v2/things',
    rawQuery: '',
    total,
    data: pageOf(ALL.slice(0, total), request),
    embedded: undefined,
    ...request,
    ...fields,
  });
}

test('the first page', () => {
  assert.equal(page(1), {
    current_page: 1,
    data: ALL.slice(0, 20),
    from: 1,
    to: 20,
    last_page: 3,
    next_page_url: 'https://gifts.example/api/v2/things?page=2',
    prev_page_url: null,
    path: 'https://gifts.example/api/v2/things',
    per_page: 20,
    total: 45,
    embedded: [],
  });
});

test('the last page is shorter and has no next', () => {
  const last = page(3);
  assert.equal(
    [last.from, last.to, last.data.length, last.next_page_url, last.prev_page_url],
    [41, 45, 5, null, 'https://gifts.example/api/v2/things?page=2'],
  );
});

test('past the end there is nothing but the way back to the last page', () => {
  const past = page(99);
  assert.equal(
    [past.current_page, past.data, past.from, past.to, past.next_page_url, past.prev_page_url],
    [99, [], 0, 0, null, 'https://gifts.example/api/v2/things?page=3'],
  );
});

test('an empty list has one empty page', () => {
  const empty = page(1, { total: 0 });
  assert.equal(
    [empty.from, empty.to, empty.last_page, empty.next_page_url, empty.prev_page_url, empty.total],
    [0, 0, 1, null, null, 0],
  );
  assert.is(page(2, { total: 0 }).prev_page_url, 'https://gifts.example/api/v2/things?page=1');
});

test('a full last page is the last', () => {
  assert.equal([page(2, { total: 40 }).next_page_url, page(2, { total: 40 }).last_page], [null, 2]);
});

test('keeps every other parameter in the addresses, and gives the page once', () => {
  const { next_page_url: next } = page(2, {
    perPage: 10,
    rawQuery: 'embed[]=a&page=2&embed[]=b%26c&per_page=10&page=7&x=%C3%A9',
  });
  const url = new URL(next ?? '');
  assert.equal(
    [...url.searchParams],
    [
      ['embed[]', 'a'],
      ['page', '3'],
      ['embed[]', 'b&c'],
      ['per_page', '10'],
      ['x', 'é'],
    ],
  );
});

test('a public address with a path and a trailing slash', () => {
  assert.is(page(1, { publicUrl: 'https://shop.example/gifts/' }).path, 'https://shop.example/gifts/api/v2/things');
});

test('what is embedded stands there', () => {
  assert.equal(page(1, { embedded: { brands: [] } }).embedded, { brands: [] });
});

test('page 1 of 20 unless the query says otherwise', () => {
  assert.equal(pageRequest({}), { page: 1, perPage: 20 });
  assert.equal(pageRequest({ page: 3, per_page: 7 }), { page: 3, perPage: 7 });
});

test.run();
