import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { hashOfNobody, PRESENT_COST } from '../../src/lib/passwordHash.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { passwordCostsProjection } from '../../src/projections/passwordCosts.js';

const test = suite('projections/passwordCosts');

const idsOf = (data: object): readonly string[] =>
  passwordCostsProjection.documentIds({ stream: 'user-ann', type: 'UserChanged', data } as RecordedEvent);

test('names the cost of each hash of a password or secret', () => {
  assert.equal(idsOf({ password_hash: hashOfNobody(PRESENT_COST), name: 'Ann' }), ['m=19456,t=2,p=1']);
  assert.equal(idsOf({ secret_hash: hashOfNobody('m=65536,t=3,p=4') }), ['m=65536,t=3,p=4']);
});

test('names no cost of a change without a hash, or of one that is none', () => {
  assert.equal(idsOf({ name: 'Ann' }), []);
  assert.equal(idsOf({ password_hash: 'of another system' }), []);
});

test.run();
