import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { retryAfterMs } from '../../src/lib/retryAfter.js';

const test = suite('Retry-After');

test('reads seconds and the three forms of a date, up to a ceiling', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.is(retryAfterMs('0', now), 0);
  assert.is(retryAfterMs(' 120 ', now), 120_000);
  assert.is(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now), 30_000);
  for (const former of ['Thursday, 01-Jan-26 00:00:30 GMT', 'Thu Jan  1 00:00:30 2026'])
    assert.is(retryAfterMs(former, now), 30_000, former);
  assert.is(retryAfterMs('Wed, 31 Dec 2025 00:00:00 GMT', now), 0);
  for (const header of [
    '3601',
    '999999999',
    '99999999999999',
    'Sat, 01 Jan 2050 00:00:00 GMT',
    'Thu, 01 Jan 2026 02:00:00 GMT',
  ])
    assert.is(retryAfterMs(header, now), 3_600_000, header);
  for (const header of [undefined, null, '', 'soon', '-5', '1.5', '45.5', '2026-01-02', '2030-01-01'])
    assert.is(retryAfterMs(header, now), undefined, String(header));
  for (const header of [
    '30 Nov 2030',
    'Mon, 2030-01-01 00:00:00',
    'Thu, 01 Jan 2026 00:00:30',
    'Thu, 01 Jan 2026 00:00:30 +0100',
    'Thu, 1 Jan 2026 00:00:30 GMT',
    'thu, 01 jan 2026 00:00:30 gmt',
    'Thu Jan 1 00:00:30 2026',
  ])
    assert.is(retryAfterMs(header, now), undefined, header);
  assert.is(retryAfterMs('120', now, 60_000), 60_000, 'a ceiling of the caller');
});

test.run();
