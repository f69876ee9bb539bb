/**
 * Sessions and the decision on a refresh token (docs/api/tokens.md#sessions). Pure. Pairs of an access and a refresh
 * token are numbered from 0. Access tokens last until they expire or the session ends.
 */
import { CLOCK_SLACK_MS } from '../../lib/clock.js';

/** How long a spent refresh token still gives another pair, ms: an answer may be lost, or two tabs refresh at once. */
const GRACE_MS = 30_000;
/** Most usable refresh tokens of a session. Beyond these, the oldest become invalid: their answers were lost. */
const MAX_LIVE = 100;
/** Most spent tokens of a session with a grace. Beyond these, the oldest lose it. */
const MAX_SPENT = 100;

/** Times are milliseconds since the epoch, tokens SHA-256 hashes. */
export interface Session {
  readonly client: string;
  /** Number of the client's credential at the session's start. Another credential ends the session. */
  readonly clientCredential: number;
  /** Id of the user. Null: the client's own session, without refresh tokens. */
  readonly user: string | null;
  readonly userCredential: number | null;
  readonly startedAt: number;
  readonly pair: number;
  /** Usable refresh tokens, oldest first. */
  readonly live: readonly LiveToken[];
  /** Spent refresh tokens within their grace, oldest first. Any other token of this session was spent earlier. */
  readonly spent: readonly SpentToken[];
}

interface LiveToken {
  readonly hash: string;
  readonly expiresAt: number;
}

interface SpentToken {
  readonly hash: string;
  readonly at: number;
}

export type RefreshDecision =
  { readonly kind: 'rotate'; readonly next: Session } | { readonly kind: 'refuse' } | { readonly kind: 'revoke' };

/** A refresh token of this session, from an authenticated client. */
interface RefreshRequest {
  readonly hash: string;
  readonly client: string;
  readonly now: number;
  readonly successor: LiveToken;
}

export function decideRefresh(session: Session, { hash, client, now, successor }: RefreshRequest): RefreshDecision {
  const sameClient = client === session.client;
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

/** A token from the future gets no grace: a clock that is set back must not lengthen it. */
const isRecent = (age: number): boolean => age >= -CLOCK_SLACK_MS && age <= GRACE_MS;
