import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { Body, StoredDocument } from '../../../src/ports/readStore.js';
import { documentCache } from '../../../src/runtime/readmodels/runningBuild.js';
import { at } from '../../support/engines/readStoreDocuments.js';

const test = suite('Document cache of a build');

function documents(from: number, count: number, body: Body = {}): Map<string, StoredDocument> {
  return new Map(
    Array.from({ length: count }, (_, n) => [`d${from + n}`, { id: `d${from + n}`, position: at(from + n), body }]),
  );
}

test('keeps the documents of one generation at least, and of two at most', () => {
  const cache = documentCache(10);
  for (let from = 0; from < 40; from += 5) cache.keep(documents(from, 5));
  assert.is(cache.get('d39')?.position, at(39));
  assert.is(cache.get('d30')?.position, at(30));
  assert.is(cache.get('d19'), undefined);
  cache.clear();
  assert.is(cache.get('d39'), undefined);
});

test('keeps no document that no event changes any more, but one that is out of service', () => {
  const cache = documentCache(10, (body) => !('open' in body));
  cache.keep(documents(0, 1, { open: true }));
  cache.keep(documents(1, 1, { closed: true }));
  cache.keep(documents(2, 1, { $unreadable: 'no text' }));
  assert.equal(
    ['d0', 'd1', 'd2'].map((id) => cache.get(id)?.id),
    ['d0', undefined, 'd2'],
  );
});

test('keeps nothing of a document that has become final, in either generation', () => {
  const cache = documentCache(10, (body) => !('open' in body));
  cache.keep(documents(0, 8, { open: true }));
  cache.keep(documents(8, 8, { open: true }));
  cache.keep(documents(0, 1, { closed: true }));
  cache.keep(documents(8, 1, { closed: true }));
  assert.equal(
    ['d0', 'd1', 'd8', 'd9'].map((id) => cache.get(id)?.id),
    [undefined, 'd1', undefined, 'd9'],
  );
});

test.run();
