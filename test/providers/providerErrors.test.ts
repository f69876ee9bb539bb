import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { neverSent } from '../../src/providers/providerErrors.js';

// Of dates of headers only some say that they are in UTC; those of a machine that is elsewhere must not be read as its
// own time.
process.env['TZ'] = 'America/New_York';

const test = suite('provider errors');

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
