/**
 * A session, and the decision on a refresh token that comes in (docs/decisions.md#sessions). Pure. A session hands out
 * pairs of an access and a refresh token, numbered from 0. Access tokens last until they expire or the session ends.
 */
import { CLOCK_SLACK_MS } from '../../lib/clock.js';

/**
 * How long a spent refresh token still gives another pair, ms: its answer may have been lost, or two tabs asked at
 * once.
 */
const GRACE_MS = 30_000;
/** The most usable refresh tokens of a session; then the oldest, whose answers were lost, stop counting. */
const MAX_LIVE = 100;
/** The most spent ones that are remembered for their grace; then the oldest are forgotten. */
const MAX_SPENT = 100;

/** A stored session. Times are milliseconds since the epoch, tokens are SHA-256 hashes. */
export interface Session {
  readonly client: string;
  /** The client's `credential` at the session's start: another one ends it. */
  readonly clientCredential: number;
  /** Null: the client's own session, without refresh tokens. */
  readonly user: string | null;
  readonly userCredential: number | null;
  readonly startedAt: number;
  /** The number of the latest pair. */
  readonly pair: number;
  /** The usable refresh tokens, oldest first. */
  readonly live: readonly LiveToken[];
  /** Those spent within their grace, oldest first. Any other token of this session was spent earlier. */
  readonly spent: readonly SpentToken[];
}

export interface LiveToken {
  readonly hash: string;
  readonly expiresAt: number;
}

export interface SpentToken {
  readonly hash: string;
  readonly at: number;
}

/** Hand out the next pair, refuse the token, or end the session. */
export type RefreshDecision =
  { readonly kind: 'rotate'; readonly next: Session } | { readonly kind: 'refuse' } | { readonly kind: 'revoke' };

/** A refresh token that was made for this session. */
export interface RefreshRequest {
  readonly hash: string;
  /** The client that sent it and proved its identity. */
  readonly client: string;
  readonly now: number;
  /** The token that would be handed out. */
  readonly successor: LiveToken;
}

export function decideRefresh(session: Session, { hash, client, now, successor }: RefreshRequest): RefreshDecision {
  const sameClient = client === session.client;
  // A successor lasts at most to the session's own end.
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
 * Whether a token is within its grace. One from the future is not: a clock that is set back must not lengthen the
 * grace.
 */
const isRecent = (age: number): boolean => age >= -CLOCK_SLACK_MS && age <= GRACE_MS;
