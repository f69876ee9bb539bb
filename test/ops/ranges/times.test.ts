import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { TimeError, pastInstant, timeZone } from '../../../src/ops/ranges/times.js';

const test = suite('audit/times');
const london = timeZone('Europe/London');

test('a day is of the zone, summer and winter', () => {
  assert.is(london.dayOf('2026-01-31T23:59:59.999Z'), '2026-01-31');
  assert.is(london.dayOf('2026-06-30T22:59:59.999Z'), '2026-06-30');
  assert.is(london.dayOf('2026-06-30T23:00:00.000Z'), '2026-07-01');
  assert.is(timeZone('UTC').dayOf('2026-06-30T23:00:00.000Z'), '2026-06-30');
  assert.is(timeZone('Asia/Kathmandu').dayOf('2026-06-30T18:15:00.000Z'), '2026-07-01');
  assert.is(timeZone('Asia/Kathmandu').dayOf('2026-06-30T18:14:59.999Z'), '2026-06-30');
});

test('a time with an offset is what it says', () => {
  for (const text of [
    '2026-05-04T12:30:00Z',
    '2026-05-04T13:30:00.000+01:00',
    '2026-05-04 07:30-0500',
    '2026-05-04T18:00+05:30',
    ' 2026-05-04T12:30Z ',
  ]) {
    assert.is(london.instant(text, 'first'), '2026-05-04T12:30:00.000Z', text);
  }
  assert.is(london.instant('2026-05-04T12:30:00.123456Z', 'last'), '2026-05-04T12:30:00.123Z');
});

test('a time without one is of the zone', () => {
  assert.is(london.instant('2026-05-04 12:30', 'first'), '2026-05-04T11:30:00.000Z');
  assert.is(london.instant('2026-12-04T12:30:15.5', 'first'), '2026-12-04T12:30:15.500Z');
  assert.is(timeZone('America/New_York').instant('2026-05-04 12:30', 'first'), '2026-05-04T16:30:00.000Z');
});

test('a day has its first and its last instant, also where the clock changes', () => {
  assert.is(london.instant('2026-05-04', 'first'), '2026-05-03T23:00:00.000Z');
  assert.is(london.instant('2026-05-04', 'last'), '2026-05-04T22:59:59.999Z');
  assert.is(london.instant('2026-03-29', 'first'), '2026-03-29T00:00:00.000Z');
  assert.is(london.instant('2026-03-29', 'last'), '2026-03-29T22:59:59.999Z');
  assert.is(london.instant('2026-10-25', 'first'), '2026-10-24T23:00:00.000Z');
  assert.is(london.instant('2026-10-25', 'last'), '2026-10-25T23:59:59.999Z');
});

test('of an hour that is there twice the first is meant; one that is left out is as much later', () => {
  assert.is(london.instant('2026-10-25 01:30', 'first'), '2026-10-25T00:30:00.000Z');
  assert.is(london.instant('2026-03-29 01:30', 'first'), '2026-03-29T01:30:00.000Z');
});

test('the first and the last year of the calendar sort before and after all times, in every zone', () => {
  const now = '2026-05-04T12:30:00.000Z';
  for (const zone of ['UTC', 'Asia/Kolkata', 'America/New_York'].map(timeZone)) {
    for (const text of ['9999-12-31', '9999-12-31T23:59', '9999-12-31T23:59-05:00']) {
      const last = zone.instant(text, 'last');
      assert.ok(now < last, `${zone.name} ${text}: ${last}`);
      assert.throws(() => pastInstant(zone, text, now), /is still to come/);
    }
    const first = zone.instant('0001-01-01', 'first');
    assert.ok(/^\d{4}-/.test(first) && first < now, `${zone.name}: ${first}`);
  }
});

test('what is looked back at is over, or under way', () => {
  const now = '2026-05-04T12:30:00.000Z';
  assert.is(pastInstant(london, '2026-05-03', now), '2026-05-03T22:59:59.999Z');
  assert.is(pastInstant(london, '2026-05-04', now), now);
  assert.is(pastInstant(london, '2026-05-04 13:30', now), now);
  for (const text of ['2026-05-04 13:31', '2026-05-04T12:30:00.001Z', '2026-05-05']) {
    assert.throws(
      () => pastInstant(london, text, now),
      (error: Error) => error instanceof TimeError && error.message === `"${text}" is still to come: it is ${now} now`,
      text,
    );
  }
});

test('what is no time or no zone is refused with one that is', () => {
  for (const text of [
    '',
    'yesterday',
    '2026-13-01',
    '2026-02-30',
    '2026-05-04T25:00',
    '2026-05-04T12:61Z',
    '2026-02-30T12:00Z',
    '0000-00-00',
    '2026-05-04T12:30+01:60',
    '04/05/2026',
    '2026-5-4',
    '2026-02-29T00:00',
    `2026-05-04${'0'.repeat(500)}`,
  ]) {
    assert.throws(
      () => london.instant(text, 'first'),
      (error: Error) =>
        error instanceof TimeError &&
        /is not a time: give one such as/.test(error.message) &&
        error.message.length < 200,
      text,
    );
  }
  for (const name of ['', 'Mars/Base', 'Europe/London\n'])
    assert.throws(
      () => timeZone(name),
      (error: Error) => error instanceof TimeError && /is not a time zone/.test(error.message),
    );
});

test.run();
