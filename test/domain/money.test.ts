import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { pounds } from '../../src/domain/money.js';

const test = suite('money');

test('pounds have two decimals', () => {
  assert.equal([0, 5, 50, 99, 100, 101, 1050, 1999, 100_000_000].map(pounds), [
    '0.00',
    '0.05',
    '0.50',
    '0.99',
    '1.00',
    '1.01',
    '10.50',
    '19.99',
    '1000000.00',
  ]);
});

test('what is owed has its sign, and nothing has none', () => {
  assert.equal([-1, -99, -100, -1050, -0].map(pounds), ['-0.01', '-0.99', '-1.00', '-10.50', '0.00']);
});

test('every penny stands, in sums of any size that a number can hold', () => {
  assert.is(pounds(Number.MAX_SAFE_INTEGER), '90071992547409.91');
  assert.is(pounds(Number.MIN_SAFE_INTEGER), '-90071992547409.91');
  for (const pence of [0, 1, 10, 99, 100, 899, 990]) {
    const large = 9_007_199_254_740_000 + pence;
    assert.is(pounds(large), `${String(large).slice(0, -2)}.${String(large).slice(-2)}`);
  }
});

test('what is not a whole number of pence is never rounded into one', () => {
  for (const wrong of [10.5, 0.1 + 0.2, Number.NaN, Number.POSITIVE_INFINITY, Number.MAX_SAFE_INTEGER + 1]) {
    assert.throws(
      () => pounds(wrong),
      (error: Error) => error instanceof RangeError && /is not a whole number of pence/.test(error.message),
      String(wrong),
    );
  }
});

test.run();
