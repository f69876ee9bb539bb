import { LRUCache } from 'lru-cache';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { atMost } from '../../src/lib/lruOptions.js';

const test = suite('lib/lruOptions');

test('drops the least recently used entry beyond the limit', () => {
  const cache = new LRUCache<string, number>(atMost(2));
  cache.set('one', 1).set('two', 2);
  cache.get('one');
  cache.set('three', 3);
  assert.equal([...cache.keys()].sort(), ['one', 'three']);
});

test.run();
