import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  changedTypes,
  dataUpToDate,
  isOfLaterVersion,
  schemaNote,
  UPCASTERS,
  type Upcasters,
} from '../../src/domain/upcasters.js';

const test = suite('events of older shapes');

/** As if redemptions had first noted no till, and then tills under another name. */
const SAMPLE: Upcasters = {
  GiftRedeemed: [(data) => ({ ...data, till: null }), ({ till, ...kept }) => ({ ...kept, till_id: till })],
};
const STEPS = SAMPLE.GiftRedeemed ?? [];

test('data goes through every version after its own', () => {
  assert.equal(dataUpToDate({ redemption_id: 'r' }, undefined, STEPS), { redemption_id: 'r', till_id: null });
  assert.equal(dataUpToDate({ redemption_id: 'r', till: 't' }, 2, STEPS), { redemption_id: 'r', till_id: 't' });
});

test('data of the present version, or of a later release, is handed on as it is', () => {
  const data = { redemption_id: 'r', till_id: 't' };
  assert.is(dataUpToDate(data, 3, STEPS), data);
  assert.is(dataUpToDate(data, 4, STEPS), data);
});

test('stored data is not touched', () => {
  const stored = Object.freeze({ redemption_id: 'r', till: 't' });
  dataUpToDate(stored, 2, STEPS);
  assert.equal(stored, { redemption_id: 'r', till: 't' });
});

test('an appended event notes its version, unless that is the first', () => {
  assert.equal(
    [schemaNote('GiftRedeemed', SAMPLE), schemaNote('GiftClaimed', SAMPLE), schemaNote('toString', SAMPLE)],
    [{ schema: 3 }, {}, {}],
  );
  assert.equal([...changedTypes(SAMPLE).keys()], ['GiftRedeemed']);
});

test('an event is of a later version where it notes one that this release does not know', () => {
  const later = (type: string, schema?: number): boolean => isOfLaterVersion(type, schema, SAMPLE);
  assert.equal([later('GiftRedeemed'), later('GiftRedeemed', 3), later('GiftRedeemed', 4)], [false, false, true]);
  assert.equal([later('GiftClaimed'), later('GiftClaimed', 1), later('GiftClaimed', 2)], [false, false, true]);
});

test("no type of this release's has an empty list, which would be read as a change", () => {
  assert.equal(
    Object.values(UPCASTERS).filter((steps: readonly unknown[]) => steps.length === 0),
    [],
  );
});

test.run();
