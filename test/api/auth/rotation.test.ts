import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type RefreshDecision, type Session, decideRefresh } from '../../../src/api/auth/rotation.js';

const test = suite('rotation');
const DAY = 86_400_000;
const START = 1_000_000_000_000;

const login: Session = {
  client: 'app',
  clientCredential: 1,
  user: 'ada',
  userCredential: 1,
  startedAt: START,
  pair: 0,
  live: [{ hash: 'token 0', expiresAt: START + 30 * DAY }],
  spent: [],
};

/** A token comes in, and `token {pair}` would be handed out. */
function comes(session: Session, hash: string, at: number, client = 'app'): RefreshDecision {
  const successor = { hash: `token ${session.pair + 1}`, expiresAt: Math.min(START + at + 30 * DAY, START + 90 * DAY) };
  return decideRefresh(session, { hash, client, now: START + at, successor });
}

function rotated(session: Session, hash: string, at: number): Session {
  const decision = comes(session, hash, at);
  if (decision.kind !== 'rotate') throw new Error(`it was to be rotated, not to ${decision.kind}`);
  return decision.next;
}

const kind = (session: Session, hash: string, at: number, client?: string): string =>
  comes(session, hash, at, client).kind;
const live = (session: Session): string[] => session.live.map(({ hash }) => hash);

test('the token that comes in is replaced by a new one', () => {
  const next = rotated(login, 'token 0', 5_000);
  assert.equal(next, {
    ...login,
    pair: 1,
    live: [{ hash: 'token 1', expiresAt: START + 5_000 + 30 * DAY }],
    spent: [{ hash: 'token 0', at: START + 5_000 }],
  });
  assert.equal(live(rotated(next, 'token 1', 6_000)), ['token 2']);
});

test('an expired token is refused, and so is everything at the end of the family', () => {
  assert.is(kind(login, 'token 0', 30 * DAY - 1), 'rotate');
  assert.is(kind(login, 'token 0', 30 * DAY), 'refuse');
  const old: Session = {
    ...login,
    live: [{ hash: 'token 0', expiresAt: START + 95 * DAY }],
    spent: [{ hash: 'before', at: START + 90 * DAY - 1 }],
  };
  assert.is(kind(old, 'token 0', 90 * DAY), 'refuse');
  assert.is(kind(old, 'before', 90 * DAY), 'refuse');
  assert.is(kind(old, 'before', 90 * DAY - 1), 'rotate');
});

test('another client gets nothing for a live token, and ends the family by a spent one', () => {
  assert.is(kind(login, 'token 0', 1, 'other'), 'refuse');
  assert.is(kind(rotated(login, 'token 0', 1_000), 'token 0', 1_001, 'other'), 'revoke');
});

test('a spent token gives another pair for 30 seconds, and both pairs live on', () => {
  const next = rotated(login, 'token 0', 1_000);
  const again = rotated(next, 'token 0', 31_000);
  assert.is(again.pair, 2);
  assert.equal(live(again), ['token 1', 'token 2']);
  assert.equal(again.spent, [{ hash: 'token 0', at: START + 1_000 }], 'its grace is not lengthened');
  assert.equal(live(rotated(again, 'token 1', 40_000)), ['token 2', 'token 3']);
  assert.equal(live(rotated(again, 'token 2', 40_000)), ['token 1', 'token 3']);
});

test('also when its successors were spent meanwhile', () => {
  const third = rotated(rotated(login, 'token 0', 1_000), 'token 1', 2_000);
  assert.equal(live(rotated(third, 'token 0', 3_000)), ['token 2', 'token 3']);
  assert.equal(live(rotated(third, 'token 1', 3_000)), ['token 2', 'token 3']);
});

test('a token spent longer ago ends the family, whichever of its pairs lives', () => {
  const next = rotated(login, 'token 0', 1_000);
  assert.is(kind(next, 'token 0', 31_001), 'revoke');
  assert.is(kind(rotated(next, 'token 0', 2_000), 'token 0', 31_001), 'revoke');
  assert.is(kind(rotated(next, 'token 1', 31_001), 'token 0', 31_002), 'revoke');
  assert.is(kind(rotated(next, 'token 1', 31_001), 'token 1', 61_001), 'rotate');
  assert.is(kind(login, 'never spent here', 1), 'revoke');
});

test('keeps the grace as long for a clock that is set back, and for clocks that differ a little', () => {
  const next = rotated(login, 'token 0', 3_600_000);
  assert.is(kind(next, 'token 0', 3_595_000), 'rotate');
  assert.is(kind(next, 'token 0', 3_594_999), 'revoke');
  assert.is(kind(next, 'token 0', 35_000), 'revoke');
});

test('keeps a session small: forgets the oldest live tokens, and expired and long spent ones', () => {
  let session = rotated(login, 'token 0', 0);
  for (let at = 1; at <= 150; at += 1) session = rotated(session, 'token 0', at);
  assert.equal([session.live.length, session.spent.length], [100, 1]);
  assert.equal([live(session)[0], live(session)[99]], ['token 52', 'token 151']);
  for (let at = 200; at < 350; at += 1) session = rotated(session, `token ${session.pair}`, at);
  assert.equal([session.live.length, session.spent.length], [100, 100]);
  session = rotated(session, `token ${session.pair}`, 40_000);
  assert.equal(session.spent, [{ hash: 'token 301', at: START + 40_000 }]);
  session = rotated(rotated(session, 'token 302', 29 * DAY), 'token 303', 31 * DAY);
  assert.equal(live(session), ['token 304']);
});

test.run();
