import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { accessTokens, type AccessClaims } from '../../../src/api/auth/accessTokens.js';
import { type Lifetimes, type Sessions, type TokenPair, sessions } from '../../../src/api/auth/sessions.js';
import type { Session } from '../../../src/api/auth/rotation.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import { type Clock, type MemoryRecords, TOKEN_KEY, aClient, aUser, clockAt, hash, memoryRecords } from './support.js';

const test = suite('sessions');
const DAY = 86_400_000;
const app = aClient('app', '');
const ada = aUser('ada', '');

interface Process {
  readonly sessions: Sessions;
  /** Whether the pair's access token may act. */
  acts(pair: TokenPair): Promise<boolean>;
  refresh(pair: TokenPair, client?: string): Promise<TokenPair | undefined>;
}

/** Processes that share records. */
function setUp(ttl: Lifetimes = { access: 900, refresh: 30 * 86_400, session: 90 * 86_400 }): {
  clock: Clock;
  records: MemoryRecords;
  process: () => Process;
} {
  const clock = clockAt();
  const records = memoryRecords(clock.now);
  return {
    clock,
    records,
    process() {
      const tokens = accessTokens([TOKEN_KEY], clock.now);
      const all = sessions({ records, tokens, hash, ttl, now: clock.now });
      return {
        sessions: all,
        async acts(pair) {
          const claims = await tokens.verify(pair.accessToken);
          if (claims === undefined) return false;
          const known = all.inUse(claims);
          const session = await all.use(claims);
          if (known !== undefined) assert.equal(session, known, 'what is known without asking is what asking says');
          return session !== undefined;
        },
        refresh: async (pair, client = 'app') => all.refresh(pair.refreshToken ?? '', client, async () => true),
      };
    },
  };
}

const must = <T>(value: T | undefined): T => {
  if (value === undefined) throw new Error('there is none');
  return value;
};

test("a login gives a pair, a client's own session an access token alone", async () => {
  const { process } = setUp();
  const here = process();
  const login = await here.sessions.start(app, ada);
  assert.is(login.expiresIn, 900);
  assert.ok(login.refreshToken);
  assert.ok(await here.acts(login));
  const own = await here.sessions.start(app);
  assert.is(own.refreshToken, undefined);
  assert.ok(await here.acts(own));
});

test('refresh tokens are stored only as a hash, access tokens not at all', async () => {
  const { process, records } = setUp();
  const here = process();
  const login = await here.sessions.start(app, ada);
  const next = must(await here.refresh(login));
  for (const token of [login.accessToken, next.accessToken, login.refreshToken, next.refreshToken]) {
    for (const part of must(token).split('.').slice(1)) assert.not.ok(records.text().includes(part));
  }
});

test('a revoked token ends its session here at once, and elsewhere within half a second', async () => {
  const { process, clock, records } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  const next = must(await here.refresh(login));
  assert.ok(await there.acts(next));
  assert.is(await here.sessions.revoke(next.accessToken, 'pos'), false);
  assert.ok(await here.acts(login));
  assert.is(await here.sessions.revoke(must(login.refreshToken), 'app'), true, 'a spent one, too');
  assert.not.ok(await here.acts(next));
  clock.ms += 500;
  assert.not.ok(await there.acts(next));
  assert.is(await there.refresh(next), undefined);
  assert.equal(records.keys(), [], 'nothing is kept of it');
  for (const token of [next.accessToken, must(next.refreshToken), 'nonsense', ''])
    assert.is(await here.sessions.revoke(token, 'app'), true, 'ends nothing');
});

test('a refresh that meets a revocation leaves no session', async () => {
  for (let turn = 0; turn < 20; turn += 1) {
    const { process, records } = setUp();
    const [here, there] = [process(), process()];
    const login = await here.sessions.start(app, ada);
    const [, pair] = await Promise.all([here.sessions.revoke(login.accessToken, 'app'), there.refresh(login)]);
    assert.equal(records.keys(), []);
    assert.not.ok(pair !== undefined && (await here.acts(pair)));
  }
});

test('a session lasts 90 days at most, and none of its tokens outlives it', async () => {
  const { process, clock } = setUp();
  const here = process();
  let pair = await here.sessions.start(app, ada);
  for (let month = 0; month < 3; month += 1) {
    clock.ms += 29 * DAY;
    pair = must(await here.refresh(pair));
  }
  clock.ms += 3 * DAY - 1;
  pair = must(await here.refresh(pair));
  clock.ms += 1;
  assert.is(await here.refresh(pair), undefined);
  assert.not.ok(await here.acts(pair));
});

test('the last access token ends with its session', async () => {
  const { process, clock } = setUp({ access: 900, refresh: 5_000, session: 1_000 });
  const here = process();
  const login = await here.sessions.start(app, ada);
  clock.ms += 999_999;
  const next = must(await here.refresh(login));
  assert.is(next.expiresIn, 1);
  assert.ok(await here.acts(next));
  clock.ms += 1;
  assert.not.ok(await here.acts(next));
  assert.is(await here.refresh(next), undefined);
});

test('a refresh token lives as long as said', async () => {
  const { process, clock } = setUp({ access: 900, refresh: 60, session: 5_000 });
  const here = process();
  const login = await here.sessions.start(app, ada);
  clock.ms += 59_999;
  const next = must(await here.refresh(login));
  clock.ms += 60_000;
  assert.is(await here.refresh(next), undefined);
  assert.ok(await here.acts(next));
});

test('ends a whole family within half a second, in every process, for a token spent long ago', async () => {
  const { process, clock } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  const next = must(await here.refresh(login));
  clock.ms += 30_001;
  assert.ok(await there.acts(next));
  assert.ok(await there.acts(login));
  assert.is(await here.refresh(login), undefined);
  assert.not.ok(await here.acts(next));
  clock.ms += 500;
  assert.not.ok(await there.acts(next));
  assert.not.ok(await there.acts(login));
  assert.is(await there.refresh(next), undefined);
});

test('acting stores nothing', async () => {
  const { process, records } = setUp();
  const here = process();
  const next = must(await here.refresh(await here.sessions.start(app, ada)));
  const puts = records.calls.put;
  assert.ok(await here.acts(next));
  assert.is(records.calls.put, puts);
});

test('many uses of one token at once, in two processes: each gets a pair, and all pairs live on', async () => {
  const { process, clock } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  const pairs = (
    await Promise.all(Array.from({ length: 20 }, async (_, index) => (index % 2 === 0 ? here : there).refresh(login)))
  ).map(must);
  assert.is(new Set(pairs.map(({ refreshToken }) => refreshToken)).size, 20);
  for (const pair of pairs) assert.equal([await here.acts(pair), await there.acts(pair)], [true, true]);
  clock.ms += 60_000;
  const next = (
    await Promise.all(pairs.map(async (pair, index) => (index % 2 === 0 ? there : here).refresh(pair)))
  ).map(must);
  for (const pair of next) assert.ok(await here.acts(pair));
  assert.is(await there.refresh(login), undefined);
  clock.ms += 500;
  for (const pair of [...pairs, ...next]) assert.equal([await here.acts(pair), await there.acts(pair)], [false, false]);
});

test('a token that comes back within its grace, with its successor in use, gives another pair', async () => {
  const { process } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  const next = must(await here.refresh(login));
  const [acted, again] = await Promise.all([there.acts(next), here.refresh(login)]);
  assert.ok(acted);
  for (const pair of [next, must(again)]) assert.ok(await there.acts(pair));
});

test('a reuse that ends the family and a refresh at the same moment: nothing of it lives on', async () => {
  const { process, clock } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  const next = must(await here.refresh(login));
  clock.ms += 30_001;
  const [reused, other] = await Promise.all([here.refresh(login), there.refresh(next)]);
  assert.is(reused, undefined);
  clock.ms += 500;
  for (const pair of [login, next, ...(other === undefined ? [] : [other])])
    assert.equal([await here.acts(pair), await there.acts(pair)], [false, false]);
});

test('a session kept in another shape is none', async () => {
  const { process, records, clock } = setUp();
  const login = await process().sessions.start(app, ada);
  const record = must((await records.list<Session>('session/2/'))[0]);
  await records.put(
    record.key.replace('session/2/', 'session/'),
    { pair: 0 },
    { expected: 0, expiresAt: clock.now() + DAY },
  );
  await records.delete(record.key);
  assert.is(await process().refresh(login), undefined);
  assert.not.ok(await process().acts(login));
});

test('a pair that another process handed out just now is known at once', async () => {
  const { process } = setUp();
  const [here, there] = [process(), process()];
  const login = await here.sessions.start(app, ada);
  assert.ok(await there.acts(login));
  assert.ok(await there.acts(must(await here.refresh(login))));
});

test("a session or pair that never was, or another user's, is none", async () => {
  const { process } = setUp();
  const here = process();
  await here.sessions.start(app, ada);
  const tokens = accessTokens([TOKEN_KEY], clockAt().now);
  const login = await here.sessions.start(app, ada);
  const claims = must(await tokens.verify(login.accessToken));
  const { userId: _, ...clientClaims } = claims;
  for (const bad of [
    { ...claims, sessionId: 'A'.repeat(22) },
    { ...claims, pair: 7 },
    { ...claims, userId: 'bob' },
    clientClaims,
  ] satisfies AccessClaims[]) {
    assert.is(await here.sessions.use(bad), undefined);
  }
  assert.ok(await here.sessions.use(claims));
});

test('a token made elsewhere costs no look-up', async () => {
  const { process, records } = setUp();
  const gets = records.calls.get;
  assert.is(
    await process().refresh({
      accessToken: '',
      expiresIn: 0,
      refreshToken: `${'a'.repeat(22)}.${'b'.repeat(43)}.${'c'.repeat(22)}`,
    }),
    undefined,
  );
  assert.is(records.calls.get, gets);
});

test('nothing is handed out when client or user no longer stand', async () => {
  const { process } = setUp();
  const here = process();
  const login = await here.sessions.start(app, ada);
  assert.is(await here.sessions.refresh(must(login.refreshToken), 'app', async () => false), undefined);
  assert.ok(await here.refresh(login));
});

test('a store that never takes a change is unavailable, not endless', async () => {
  const { clock, records, process } = setUp();
  const login = await process().sessions.start(app, ada);
  const next = must(await process().refresh(login));
  const stubborn = { ...records, put: async () => undefined };
  const tokens = accessTokens([TOKEN_KEY], clock.now);
  const broken = sessions({
    records: stubborn,
    tokens,
    hash,
    ttl: { access: 900, refresh: 900, session: 900 },
    now: clock.now,
  });
  await broken
    .refresh(must(next.refreshToken), 'app', async () => true)
    .then(
      () => assert.unreachable(),
      (error) => assert.instance(error, UnavailableError),
    );
  await broken.start(app).then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, /session id is taken/),
  );
});

test.run();
