import type { Collection, FindOptions } from 'mongodb';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { sortedFind } from '../../../src/adapters/mongodb/finds.js';

interface Text {
  readonly _id: string;
  readonly b: string;
}

const test = suite('MongoDB: sorted finds');

/** Answers 16 MB at most without a cursor, and all with one. */
function collectionOf(documents: readonly Text[]) {
  const requested: FindOptions[] = [];
  function find(_: object, options: FindOptions) {
    requested.push(options);
    const wanted = documents.slice(0, options.limit ?? Number.POSITIVE_INFINITY);
    const found = options.singleBatch === true ? firstAnswer(wanted, options.batchSize ?? 101) : wanted;
    let left = [...found];
    return {
      toArray: async () => found,
      hasNext: async () => left.length > 0,
      readBufferedDocuments: () => left.splice(0, options.batchSize),
      close: async () => (left = []),
    };
  }
  return { requested, collection: { find } as unknown as Collection<Text> };
}

function firstAnswer(documents: readonly Text[], most: number): readonly Text[] {
  let bytes = 0;
  const cut = documents.slice(0, most).findIndex(({ b }) => (bytes += Buffer.byteLength(b)) > 16_000_000);
  return documents.slice(0, cut === -1 ? most : cut);
}

const texts = (count: number, units: number): Text[] =>
  Array.from({ length: count }, (_, n) => ({ _id: String(n), b: '€'.repeat(units) }));

for (const [what, documents, limit, asks] of [
  ['none', [], 10, 1],
  ['fewer than asked for', texts(3, 10), 10, 1],
  ['as many as asked for', texts(10, 10), 10, 1],
  ['without a limit, few', texts(999, 10), undefined, 1],
  ['without a limit, more than one answer', texts(2_500, 10), undefined, 2],
  ['a limit above one answer', texts(2_500, 10), 1_500, 2],
  ['an answer cut short', texts(20, 1_000_000), 30, 2],
  ['an answer cut short, without a limit', texts(20, 1_000_000), undefined, 2],
] as const)
  test(`finds all: ${what}`, async () => {
    const { requested, collection } = collectionOf(documents);
    const found = await sortedFind(collection, {}, { sort: { _id: 1 }, limit }, ({ _id }) => _id);
    assert.equal(
      found,
      documents.slice(0, limit).map(({ _id }) => _id),
    );
    assert.is(requested.length, asks);
  });

test('the first answer of a sorted find needs no cursor', async () => {
  const { requested, collection } = collectionOf(texts(3, 10));
  await sortedFind(collection, {}, { sort: { _id: 1 } }, ({ _id }) => _id);
  assert.equal(
    requested.map(({ singleBatch }) => singleBatch),
    [true],
  );
});

test('a limit of none asks for nothing', async () => {
  const { requested, collection } = collectionOf(texts(3, 10));
  assert.equal(await sortedFind(collection, {}, { sort: { _id: 1 }, limit: 0 }, ({ _id }) => _id), []);
  assert.is(requested.length, 0);
});

test.run();
