import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { csvLine, csvWriter, withoutMark } from '../../../src/ops/exports/csv.js';

import { timeZone } from '../../../src/ops/ranges/times.js';

const test = suite('audit/csv');

test('has the local day beside each time, and a byte order mark for Excel', () => {
  const columns = ['id', 'at', 'name'];
  const london = csvWriter(columns, {});
  assert.is(london.heading, 'id,at,local_day,name\n');
  assert.is(
    london.line(['a', '2026-05-03T23:30:00.000Z', '£5 off']),
    'a,2026-05-03T23:30:00.000Z,2026-05-04,£5 off\n',
    'in summer the day begins an hour earlier',
  );
  const tokyo = csvWriter(columns, { zone: timeZone('Asia/Tokyo'), excel: true });
  assert.is(tokyo.heading, '\uFEFFid,at,local_day,name\n');
  assert.is(tokyo.line(['a', '2026-12-31T16:00:00.000Z', '']), 'a,2026-12-31T16:00:00.000Z,2027-01-01,\n');
});

test('marks text that a spreadsheet would convert with an apostrophe, which a program removes', () => {
  const taken = [
    '12345678901234567890',
    '0000000000184213',
    '007',
    '1e5',
    '12345e67890123456789',
    '1.50',
    '1-2',
    '3/4',
    '10:30',
    '4.5.26',
    'MAR1',
    '1-Sep',
    'dec 24',
    '1-Sep-26',
    '26-Sep-1',
    '1 Jan 2026',
    'January 1 2026',
    '10:30 PM',
    '9 a.m.',
    '2026-05-04T10:00',
    '4/5/2026 10:30',
    '$5',
    '£10',
    '5 €',
    '£1.000',
    '(5)',
    '.5',
    '1 1/2',
    ' 007 ',
    '=1+1',
    '+44',
    '-1',
    '@x',
    '\t=1',
    "'t Hof",
  ];
  for (const text of taken) {
    assert.is(csvLine([text]), `'${text}`);
    assert.is(withoutMark(`'${text}`), text);
  }
  const left = [
    '',
    '0',
    '42',
    '12345678901',
    'a1',
    '5f2c9d6a1b7e4c80d3a1',
    '2026-05-04',
    '2026-05-04T12:30:00.000Z',
    'flat-white',
    'Café latte',
    'KXJ7-ABCD',
    'g-1-2',
    'user 1',
    '£10 gift card',
    '7-Up',
    '10:30 to noon',
    'Mayfair',
    '(a)',
  ];
  for (const text of left) {
    assert.is(csvLine([text]), text);
    assert.is(withoutMark(text), text);
  }
  assert.is(csvLine([12, -5, true, null, undefined]), '12,-5,true,,', 'numbers are numbers');
});

test('commas, quotes and ends of lines are quoted', () => {
  assert.is(csvLine(['Jan 1, 2026']), '"\'Jan 1, 2026"');
  assert.is(csvLine(['a,b', 'say "x"', 'one\ntwo', '=a,b']), '"a,b","say ""x""","one\ntwo","\'=a,b"');
});

test.run();
