import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { type RefreshDecision, type Session, decideRefresh, pairCounts, useMatters } from '../../../src/api/auth/rotation.js';

const test = suite('rotation');
const DAY = 86_400_000;
const START = 1_000_000_000_000;

const login: Session = {
  client: 'app', clientCredential: 1, user: 'ada', userCredential: 1, startedAt: START, pair: 0,
  refresh: { hash: 'token 0', expiresAt: START + 30 * DAY }, spent: null, used: false, ended: [],
};

/** A token comes in, and `token {pair}` would be handed out. */
function comes(session: Session, hash: string, at: number, client = 'app'): RefreshDecision {
  const successor = { hash: `token ${session.pair + 1}`, expiresAt: Math.min(START + at + 30 * DAY, START + 90 * DAY) };
  return decideRefresh(session, { hash, client, now: START + at, successor, accessMs: 900_000 });
}

function rotated(session: Session, hash: string, at: number): Session {
  const decision = comes(session, hash, at);
  if (decision.kind !== 'rotate') throw new Error(`it was to be rotated, not to ${decision.kind}`);
  return decision.next;
}

const kind = (session: Session, hash: string, at: number, client?: string): string => comes(session, hash, at, client).kind;

test('the latest token is replaced by a new one', () => {
  const next = rotated(login, 'token 0', 5_000);
  assert.equal(next, { ...login, pair: 1, refresh: { hash: 'token 1', expiresAt: START + 5_000 + 30 * DAY }, spent: { hash: 'token 0', at: START + 5_000 } });
  assert.is(rotated(next, 'token 1', 6_000).pair, 2);
});

test('access tokens of earlier pairs go on until they expire', () => {
  const next = rotated(rotated(login, 'token 0', 1_000), 'token 1', 2_000);
  assert.equal([0, 1, 2, 3].map((pair) => pairCounts(next, pair)), [true, true, true, false]);
});

test('an expired token is refused, and so is everything at the end of the family', () => {
  assert.is(kind(login, 'token 0', 30 * DAY - 1), 'rotate');
  assert.is(kind(login, 'token 0', 30 * DAY), 'refuse');
  const old = { ...login, refresh: { hash: 'token 0', expiresAt: START + 95 * DAY }, spent: { hash: 'before', at: START + 90 * DAY - 1 } };
  assert.is(kind(old, 'token 0', 90 * DAY), 'refuse');
  assert.is(kind(old, 'before', 90 * DAY), 'refuse');
  assert.is(kind(old, 'before', 90 * DAY - 1), 'rotate');
});

test('another client gets nothing for the latest token', () => {
  assert.is(kind(login, 'token 0', 1, 'other'), 'refuse');
});

test('a spent token ends the family', () => {
  const third = rotated(rotated(login, 'token 0', 1_000), 'token 1', 2_000);
  assert.is(kind(third, 'token 0', 2_001), 'revoke');
  assert.is(kind(rotated(login, 'token 0', 1_000), 'token 0', 31_001), 'revoke');
});

test('a spent token may come back for 30 seconds while its successor is unused, and ends that successor', () => {
  const next = rotated(login, 'token 0', 1_000);
  const again = rotated(next, 'token 0', 31_000);
  assert.is(again.pair, 2);
  assert.is(again.refresh?.hash, 'token 2');
  assert.equal(again.spent, { hash: 'token 0', at: START + 1_000 });
  assert.equal([0, 1, 2].map((pair) => pairCounts(again, pair)), [true, false, true]);
  assert.is(kind(again, 'token 1', 31_001), 'revoke');
  assert.is(kind(again, 'token 2', 31_001), 'rotate');
});

test('a clock that is set back does not lengthen the grace, clocks that differ a little take nothing from it', () => {
  const next = rotated(login, 'token 0', 3_600_000);
  assert.is(kind(next, 'token 0', 3_595_000), 'rotate');
  assert.is(kind(next, 'token 0', 3_594_999), 'revoke');
  assert.is(kind(next, 'token 0', 35_000), 'revoke');
  // Else the grace would begin once more when the clock comes there again, though the successor was used meanwhile.
  assert.ok(useMatters(next, 1, START + 35_000));
});

test('not by another client, and not once the successor was used', () => {
  const next = rotated(login, 'token 0', 1_000);
  assert.is(kind(next, 'token 0', 1_001, 'other'), 'revoke');
  assert.is(kind({ ...next, used: true }, 'token 0', 1_001), 'revoke');
  assert.is(kind(rotated(next, 'token 1', 1_001), 'token 0', 1_002), 'revoke');
});

test('a use is forgotten with the pair that was used', () => {
  const next = rotated({ ...rotated(login, 'token 0', 1_000), used: true }, 'token 1', 2_000);
  assert.is(next.used, false);
  assert.is(kind(next, 'token 1', 2_001), 'rotate');
});

test('a use matters only for the latest pair, once, and as long as the token it came for may come back', () => {
  const next = rotated(login, 'token 0', 1_000);
  assert.not.ok(useMatters(login, 0, START));
  assert.ok(useMatters(next, 1, START + 31_000));
  assert.not.ok(useMatters(next, 0, START + 1_000));
  assert.not.ok(useMatters({ ...next, used: true }, 1, START + 1_000));
  // Whose clock is five seconds behind takes the token back so much later.
  assert.ok(useMatters(next, 1, START + 36_000));
  assert.not.ok(useMatters(next, 1, START + 36_001));
});

test('pairs ended one after another are one range, and are forgotten once their tokens have expired', () => {
  let session = rotated(login, 'token 0', 0);
  for (let at = 1; at <= 20; at += 1) session = rotated(session, 'token 0', at);
  assert.equal(session.ended.map(({ from, to }) => [from, to]), [[1, 20]]);
  const later = rotated(session, 'token 21', 900_020);
  assert.equal(later.ended, []);
});

test('the ranges are bounded: the oldest grow together, and no ended pair comes back', () => {
  let session = login;
  for (let at = 0; at < 100; at += 1) {
    const token = session.refresh?.hash ?? '';
    session = rotated(session, token, at * 2);
    session = rotated(session, token, at * 2 + 1);
  }
  assert.is(session.ended.length, 32);
  for (let pair = 1; pair < 200; pair += 2) assert.not.ok(pairCounts(session, pair), `pair ${pair}`);
  assert.ok(pairCounts(session, 200));
  assert.ok(pairCounts(session, 198));
});

test.run();
