import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type OutwardEvent, ownerAfter, whyHeld } from '../../src/domain/outward.js';

const test = suite('domain/outward work');

const started: OutwardEvent = { type: 'OutwardWorkStarted', data: { log_id: 'a' } };
const held: OutwardEvent = { type: 'OutwardWorkHeld', data: { log_id: 'a', reason: 'moving' } };
const resumed: OutwardEvent = { type: 'OutwardWorkResumed', data: { log_id: 'b', reason: 'moved' } };

test('a log does the work from its start on, until a person holds it', () => {
  assert.is(whyHeld(ownerAfter(started), 'a'), undefined);
  assert.is(whyHeld(ownerAfter(held), 'a'), 'it was held (gift hold)');
});

test('a copy waits, and the log that a person named does the work instead', () => {
  assert.is(whyHeld(ownerAfter(started), 'b'), 'it is a copy of the log a, or was restored from its backup');
  assert.is(whyHeld(ownerAfter(resumed), 'b'), undefined);
  assert.is(whyHeld(ownerAfter(resumed), 'a'), 'it is a copy of the log b, or was restored from its backup');
});

test('a new log does not wait', () => assert.is(whyHeld(undefined, 'a'), undefined));

test.run();
