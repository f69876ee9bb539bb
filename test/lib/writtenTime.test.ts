import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startOfDay, timeWithZone, writtenTime } from '../../src/lib/writtenTime.js';

const test = suite('lib/writtenTime');
const at = (text: string): string | undefined => {
  const ms = timeWithZone(text);
  return ms === undefined ? undefined : new Date(ms).toISOString();
};

test('reads every spelling of one instant', () => {
  for (const text of [
    '2026-05-04T12:30:00Z',
    '2026-05-04t12:30:00z',
    '2026-05-04 12:30:00.000Z',
    '2026-05-04T12:30Z',
    '2026-05-04 12:30z',
    '2026-05-04T13:30:00+01:00',
    '2026-05-04T13:30+0100',
    '2026-05-05T02:30:00+14:00',
    '2026-05-03T22:30:00-14:00',
    '2026-05-04T12:30:00-00:00',
    '2026-05-04T12:30:00.000999999Z',
  ])
    assert.is(at(text), '2026-05-04T12:30:00.000Z', text);
  assert.is(at('2026-12-31T23:59:59.9+00:00'), '2026-12-31T23:59:59.900Z');
  assert.is(at('0001-01-01T00:00Z'), '0001-01-01T00:00:00.000Z');
});

test('refuses what is no time, and offsets that no zone has', () => {
  for (const text of [
    '2026-05-04T12:30:00+14:01',
    '2026-05-04T12:30:00+23:59',
    '2026-05-04T12:30:00+01',
    '2026-05-04T12:30:00+01:60',
    '2026-05-04T12:30:00 +01:00',
    '2026-05-04  12:30Z',
    '2026-05-04T12Z',
    '2026-05-04T24:00:00Z',
    '2026-06-30T23:59:60Z',
    '2026-05-04T12:30:00,5Z',
    '2026-05-04T12:30:00.Z',
    '2026-05-04T12:30:00.1234567890Z',
    '2026-02-29T12:30Z',
    '2026-13-01T12:30Z',
    '0000-00-00T00:00Z',
    '+012026-05-04T12:30Z',
    ' 2026-05-04T12:30Z',
    '2026-05-04T12:30Z\n',
    '2026-05-04',
    '',
  ])
    assert.is(writtenTime(text), undefined, text);
});

test('says where a zone is missing', () => {
  assert.equal(writtenTime('2026-05-04 12:30'), { wall: Date.UTC(2026, 4, 4, 12, 30), ahead: undefined });
  assert.is(timeWithZone('2026-05-04T12:30:00'), undefined);
  assert.is(startOfDay('2026-02-28'), Date.UTC(2026, 1, 28));
  for (const text of ['2026-02-29', '2026-2-28', '2026-02-28T00:00Z', '']) assert.is(startOfDay(text), undefined, text);
});

test.run();
