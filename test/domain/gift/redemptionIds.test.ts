import * as fc from 'fast-check';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { commandPartOf, redemptionIdAt } from '../../../src/domain/gift/redemptionIds.js';

const test = suite('domain/redemptionIds');
const PART = '6a1f0c92b7d34e58a0c1';

test('has the milliseconds of its time, then the command part', () => {
  assert.is(redemptionIdAt('2026-11-21T10:15:30.000Z', PART), `1a1fd9a99d0${PART}`);
  assert.is(redemptionIdAt('1970-01-01T00:00:00.001Z', PART), `00000000001${PART}`);
});

test('has the command part of an older id, which is the whole id', () => {
  assert.is(commandPartOf(PART), PART);
  assert.is(commandPartOf('r1'), 'r1');
});

test('property: sorts by time, whatever the command, and has the same part at any time', () => {
  const time = fc.date({ min: new Date(0), max: new Date('2527-01-01T00:00:00.000Z'), noInvalidDate: true });
  const part = fc
    .uint8Array({ minLength: 10, maxLength: 10 })
    .map((bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(''));
  fc.assert(
    fc.property(time, time, part, part, (one, other, first, second) => {
      const ids = [redemptionIdAt(one.toISOString(), first), redemptionIdAt(other.toISOString(), second)] as const;
      for (const id of ids) assert.match(id, /^[0-9a-f]{31}$/);
      if (one < other) assert.ok(ids[0] < ids[1]);
      if (one > other) assert.ok(ids[0] > ids[1]);
      assert.equal(ids.map(commandPartOf), [first, second]);
    }),
  );
});

test.run();
