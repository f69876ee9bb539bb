import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { typesOf } from '../../../src/runtime/readmodels/projection.js';

const test = suite('the types of a fold');

test('the event types of a fold are those given, in that order', () => {
  assert.equal(typesOf<'Bought' | 'Redeemed'>({ Redeemed: true, Bought: true }), ['Redeemed', 'Bought']);
});

test('an event type that is missing or unknown does not compile', () => {
  // @ts-expect-error -- `Redeemed` would never be folded
  typesOf<'Bought' | 'Redeemed'>({ Bought: true });
  // @ts-expect-error -- the fold knows no `Sold`
  typesOf<'Bought'>({ Bought: true, Sold: true });
});

test.run();
