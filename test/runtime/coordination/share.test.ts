import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { shareOf } from '../../../src/runtime/coordination/share.js';

const test = suite('the share of the log before a position');

test('grows from 0 to 1 with the position', () => {
  assert.is(shareOf(undefined, '200'), 0);
  assert.is(shareOf('50', '200'), 0.25);
  assert.is(shareOf('200', '200'), 1);
});

test('is 1 of an empty log, and never more', () => {
  assert.is(shareOf(undefined, undefined), 1);
  assert.is(shareOf('300', '200'), 1);
});

test('is unknown where positions tell nothing', () => assert.is(shareOf('0', '0'), undefined));

test.run();
