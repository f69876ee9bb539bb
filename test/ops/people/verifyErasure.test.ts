import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type Finding, verifyErasure } from '../../../src/ops/people/verifyErasure.js';
import { masterKeys } from '../../../src/runtime/personal/masterKeys.js';
import { memoryEvents } from '../../support/engines/memoryEvents.js';
import { memoryKeys } from '../../support/engines/memoryKeys.js';
import { memorySubjects } from '../../support/fixtures/memorySubjects.js';

const test = suite('verification of an erasure');

test('looks into all other rows of the key store where one was altered, and names that one', async () => {
  const keys = memoryKeys();
  const numbers = ['+447700900131', '+447700900132', '+447700900133'];
  const [first = '', altered = '', last = ''] = await memorySubjects(keys).ids(
    numbers.map((text) => ({ kind: 'phone', text })),
  );
  const row = keys.rows.get(altered);
  if (row === undefined) throw new Error('nothing was stored');
  keys.rows.set(altered, { ...row, secret: row.secret.slice(0, -4) + (row.secret.endsWith('AAAA') ? 'BBBB' : 'AAAA') });
  const [findings, unreadable]: [Finding[], string[]] = [[], []];
  const verification = verifyErasure(numbers, {
    signal: new AbortController().signal,
    onFinding: async (finding) => void findings.push(finding),
    onUnreadable: async (location) => void unreadable.push(location),
  });
  await verification.stores({
    events: memoryEvents(),
    store: undefined,
    keys,
    master: masterKeys(['m'.repeat(43)]),
  });
  assert.equal(findings.map(({ location }) => location).sort(), [`subject ${first}`, `subject ${last}`].sort());
  assert.equal(unreadable, [`row ${altered} of the key store`]);
  assert.is(verification.scanned.keys, 3);
});

test.run();
