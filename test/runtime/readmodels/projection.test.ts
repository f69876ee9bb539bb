import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { typesOf } from '../../../src/runtime/readmodels/projection.js';

const test = suite('the types of a fold');

test('those it is told, in that order', () => {
  assert.equal(typesOf<'Bought' | 'Redeemed'>({ Redeemed: true, Bought: true }), ['Redeemed', 'Bought']);
});

test('one that is missing, or that the fold does not know, does not compile', () => {
  // @ts-expect-error -- `Redeemed` would never be folded
  typesOf<'Bought' | 'Redeemed'>({ Bought: true });
  // @ts-expect-error -- the fold knows no `Sold`
  typesOf<'Bought'>({ Bought: true, Sold: true });
});

test.run();
