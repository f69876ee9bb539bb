import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { neverSent, retryAfterMs } from '../../src/providers/providerErrors.js';

// Of dates of headers only some say that they are in UTC; those of a machine that is elsewhere must not be read as its
// own time.
process.env['TZ'] = 'America/New_York';

const test = suite('provider errors');

test('Retry-After in seconds or as a date', () => {
  const now = Date.UTC(2026, 0, 1);
  assert.is(retryAfterMs('0', now), 0);
  assert.is(retryAfterMs(' 120 ', now), 120_000);
  assert.is(retryAfterMs('Thu, 01 Jan 2026 00:00:30 GMT', now), 30_000);
  for (const former of ['Thursday, 01-Jan-26 00:00:30 GMT', 'Thu Jan  1 00:00:30 2026'])
    assert.is(retryAfterMs(former, now), 30_000, former);
  assert.is(retryAfterMs('Wed, 31 Dec 2025 00:00:00 GMT', now), 0);
  for (const header of ['3601', '999999999', 'Sat, 01 Jan 2050 00:00:00 GMT', 'Thu, 01 Jan 2026 02:00:00 GMT'])
    assert.is(retryAfterMs(header, now), 3_600_000, header);
  for (const header of [undefined, null, '', 'soon', '-5', '1.5', '2026-01-02', '99999999999999'])
    assert.is(retryAfterMs(header, now), undefined, String(header));
});

test('knows failures before anything was sent, however deep the cause', () => {
  assert.ok(neverSent(Object.assign(new Error('x'), { code: 'ECONNREFUSED' })));
  assert.ok(neverSent(new Error('fetch failed', { cause: Object.assign(new Error('x'), { code: 'ENOTFOUND' }) })));
  const endless = new Error('x');
  endless.cause = endless;
  for (const error of [
    new Error('x'),
    endless,
    undefined,
    'ECONNREFUSED',
    Object.assign(new Error('x'), { code: 'ECONNRESET' }),
    Object.assign(new Error('x'), { code: 7 }),
  ])
    assert.not(neverSent(error));
});

test.run();
