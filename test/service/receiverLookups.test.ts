/** Where receivers are reached: what a notification's outcome rests on. */
import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { UnavailableError } from '../../src/ports/unavailable.js';
import type { AccountDocument } from '../../src/projections/accounts.js';
import { receiverLookups } from '../../src/service/processManagers.js';
import { aUser } from '../api/auth/support.js';

const test = suite('where receivers are reached');

/** The read model shows `before` until somebody waits for it; `after`: what the log holds. */
function lookups(before: AccountDocument | undefined, after: AccountDocument | undefined, shows = true) {
  let shown = before;
  let waited = 0;
  const { contact } = receiverLookups({
    events: { end: async () => '0009' },
    accounts: {
      get: async () => shown,
      async reached() {
        waited += 1;
        if (shows) shown = after;
        return shows;
      },
    },
    subjects: { secrets: async () => new Map() },
  });
  return { contact, waited: () => waited };
}

const reached = aUser('ada', '', { phone_number: '+447700900123' });

for (const [what, before] of [
  ['no user', undefined],
  ['a user without an address', aUser('ada', '')],
] as const) {
  test(`${what} in a read model that is behind: the log may hold an address`, async () => {
    assert.equal((await lookups(before, reached).contact('ada'))?.phone_number, '+447700900123');
    await assert.rejects(lookups(before, reached, false).contact('ada'), UnavailableError);
    assert.deepEqual((await lookups(before, before).contact('ada'))?.device_tokens, before?.device_tokens);
  });
}

test('whoever can be reached is not waited for', async () => {
  for (const user of [reached, aUser('ada', '', { device_tokens: ['a'] })]) {
    const { contact, waited } = lookups(user, undefined, false);
    assert.equal((await contact('ada'))?.name, 'ada');
    assert.equal(waited(), 0);
  }
});

test.run();
