/**
 * What a session is, and what becomes of it when one of its refresh tokens comes in (decisions 2). Pure.
 * A session (the token's family) hands out pairs of an access and a refresh token, numbered from 0. Access tokens last
 * until they expire or the session ends.
 */
import { CLOCK_SLACK_MS } from '../../lib/clock.js';

/**
 * How long a spent refresh token still gives another pair: its answer may have been lost, or two tabs asked at once.
 */
const GRACE_MS = 30_000;
/**
 * Refresh tokens of a session that can be used at once; beyond it the oldest stop counting, which are those of answers
 * that were lost.
 */
const MAX_LIVE = 100;
/** Spent ones that are remembered for their grace; beyond it the oldest are forgotten, as if their grace were over. */
const MAX_SPENT = 100;

/** A session as it is stored. Times are milliseconds since the epoch, tokens are SHA-256 hashes. */
export interface Session {
  readonly client: string;
  /** The client's `credential` when the session began: another one ends it. */
  readonly clientCredential: number;
  /** Null: the client's own session, which has no refresh token. */
  readonly user: string | null;
  readonly userCredential: number | null;
  readonly startedAt: number;
  /** The number of the latest pair. */
  readonly pair: number;
  /** The refresh tokens that can be used, oldest first, and until when. */
  readonly live: readonly LiveToken[];
  /**
   * Those that were used up so short a while ago that they may come back, oldest first. Any other one of this session
   * was used up before.
   */
  readonly spent: readonly SpentToken[];
}

/** A refresh token that can be used. */
export interface LiveToken {
  readonly hash: string;
  readonly expiresAt: number;
}

/** A refresh token that was used, and when that was first. */
export interface SpentToken {
  readonly hash: string;
  readonly at: number;
}

/** What to do with a refresh token: hand out the next pair, refuse it, or end the whole session. */
export type RefreshDecision =
  { readonly kind: 'rotate'; readonly next: Session } | { readonly kind: 'refuse' } | { readonly kind: 'revoke' };

/** A refresh token that comes in. It is known to have been made for this session. */
export interface RefreshRequest {
  readonly hash: string;
  /** The client that sent it, and proved to be it. */
  readonly client: string;
  readonly now: number;
  /** The token that would be handed out. */
  readonly successor: LiveToken;
}

/** Decides on a refresh token. */
export function decideRefresh(session: Session, { hash, client, now, successor }: RefreshRequest): RefreshDecision {
  const sameClient = client === session.client;
  // The session's own end is the most a successor can have.
  const over = now >= successor.expiresAt;
  const spent = session.spent.filter(({ at }) => isRecent(now - at));
  const rotate = (live: readonly LiveToken[], used: readonly SpentToken[]): RefreshDecision => ({
    kind: 'rotate',
    next: {
      ...session,
      pair: session.pair + 1,
      live: [...live, successor].slice(-MAX_LIVE),
      spent: used.slice(-MAX_SPENT),
    },
  });

  const live = session.live.find((token) => token.hash === hash);
  if (live !== undefined) {
    if (!sameClient || now >= live.expiresAt || over) return { kind: 'refuse' };
    return rotate(
      session.live.filter((token) => token !== live && now < token.expiresAt),
      [...spent, { hash, at: now }],
    );
  }
  if (!sameClient || !spent.some((token) => token.hash === hash)) return { kind: 'revoke' };
  return over ? { kind: 'refuse' } : rotate(session.live, spent);
}

/**
 * Whether a token was spent so short a while ago. Far ahead of now it was not: the clock has been set back, which must
 * not lengthen the grace.
 */
const isRecent = (age: number): boolean => age >= -CLOCK_SLACK_MS && age <= GRACE_MS;
