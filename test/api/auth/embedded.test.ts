/** Sessions and counters over the embedded read store, opened twice as two processes of one machine have it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { accessTokens } from '../../../src/api/auth/accessTokens.js';
import { type Sessions, type TokenPair, sessions } from '../../../src/api/auth/sessions.js';
import { throttle } from '../../../src/api/auth/throttle.js';
import type { HttpError } from '../../../src/api/pipeline/errors.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { TOKEN_KEY, aClient, aUser, hash } from './support.js';

/** A token that was spent longer ago, in ms, is taken for a stolen one (docs/api/tokens.md#sessions). */
const GRACE_MS = 30_000;

const test = suite<{ dir: string; stores: ReadStore[] }>('authentication over the embedded store');

test.before.each(async (context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-auth-'));
  context.stores = [
    await openEmbeddedReadStore({ dir: context.dir }),
    await openEmbeddedReadStore({ dir: context.dir }),
  ];
});

test.after.each(async ({ dir, stores }) => {
  for (const store of stores) await store.close();
  rmSync(dir, { recursive: true });
});

test('both count together, and lose no count', async ({ stores }) => {
  const counters = stores.map(({ records }) => throttle(records, hash, Date.now));
  const results = await Promise.all(
    Array.from({ length: 30 }, async (_, index) => {
      try {
        return await counters[index % 2]?.attempt(
          { address: '192.0.2.1', usernameHash: hash('username', 'ada'), userId: 'ada' },
          async (reserve) => (await reserve(), false),
        );
      } catch (error) {
        return (error as HttpError).code;
      }
    }),
  );
  assert.is(results.filter((result) => result === false).length, 10);
  assert.is(results.filter((result) => result === 'too_many_requests').length, 20);
});

test('keeps all pairs that two processes rotate at once; a token spent long ago ends both', async ({ stores }) => {
  const tokens = accessTokens([TOKEN_KEY], Date.now);
  const ttl = { access: 900, refresh: 3_600, session: 7_200 };
  let ahead = 0;
  const now = (): number => Date.now() + ahead;
  const [here, there] = stores.map(({ records }) => sessions({ records, tokens, hash, ttl, now })) as [
    Sessions,
    Sessions,
  ];
  const acts = async (one: Sessions, pair: TokenPair | undefined): Promise<boolean> => {
    const claims = await tokens.verify(pair?.accessToken ?? '');
    return claims !== undefined && (await one.use(claims)) !== undefined;
  };
  const refresh = async (one: Sessions, pair: TokenPair | undefined): Promise<TokenPair | undefined> =>
    one.refresh(pair?.refreshToken ?? '', 'app', async () => true);

  const login = await here.start(aClient('app', ''), aUser('ada', ''));
  assert.ok(await acts(there, login));
  const pairs = await Promise.all([here, there, here, there].map(async (one) => refresh(one, login)));
  assert.ok(pairs.every((pair) => pair !== undefined));
  await new Promise((resolve) => setTimeout(resolve, 550));
  for (const pair of pairs) assert.equal([await acts(here, pair), await acts(there, pair)], [true, true]);
  const [next] = await Promise.all(pairs.map(async (pair) => refresh(there, pair)));
  assert.ok(await acts(here, next));

  ahead = GRACE_MS + 1_000;
  assert.is(await refresh(here, login), undefined);
  await new Promise((resolve) => setTimeout(resolve, 550));
  for (const pair of [...pairs, next]) assert.equal([await acts(here, pair), await acts(there, pair)], [false, false]);
});

test.run();
