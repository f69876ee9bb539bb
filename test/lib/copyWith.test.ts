import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { copyWith } from '../../src/lib/copyWith.js';
import { sameHiddenClass } from '../support/assertions/hiddenClass.js';

const test = suite('copies that gain fields');

test('adds or replaces fields in a copy and leaves the object as it is', () => {
  const object = { id: 'a', price: 350 };
  const copy = copyWith(object, { price: 400, sold: true });
  assert.equal(copy, { id: 'a', price: 400, sold: true });
  assert.equal(Object.keys(copy), ['id', 'price', 'sold'], 'in the order of a spread');
  assert.equal(object, { id: 'a', price: 350 });
});

test('gives copies with the same new field one hidden class', () => {
  // Enough of them that the engine has learned what is copied here.
  const copies = Array.from({ length: 2_000 }, (_, n) => copyWith({ id: `${n}`, price: n }, { sold: `${n}` }));
  assert.ok(sameHiddenClass(copies.at(-2) as object, copies.at(-1) as object));
});

test.run();
