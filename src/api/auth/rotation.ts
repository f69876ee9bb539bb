/**
 * What a session is, and what becomes of it when one of its refresh tokens comes in (decisions 2). Pure.
 * A session (the token's family) hands out pairs of an access and a refresh token, numbered from 0.
 */
import { CLOCK_SLACK_MS } from '../../clock.js';

/** How long a spent refresh token may come back while its successor is unused: the first answer may have been lost. */
const GRACE_MS = 30_000;
/** How many ranges of ended pairs are kept apart; beyond it the oldest grow together, which ends a few pairs more. */
const MAX_RANGES = 32;

/** A session as it is stored. Times are milliseconds since the epoch. */
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
  /** SHA-256 of the latest refresh token, and until when it can be used. */
  readonly refresh: { readonly hash: string; readonly expiresAt: number } | null;
  /** The token that the latest one replaced, and when it was spent. */
  readonly spent: { readonly hash: string; readonly at: number } | null;
  /** The latest pair's access token has been used; known only as long as it matters. */
  readonly used: boolean;
  /** Pairs whose access tokens no longer count, as ranges of numbers, each until they have expired anyway. */
  readonly ended: readonly EndedPairs[];
}

/** Pairs `from` to `to`, both included. */
export interface EndedPairs {
  readonly from: number;
  readonly to: number;
  readonly until: number;
}

/** What to do with a refresh token: hand out the next pair, refuse it, or end the whole session. */
export type RefreshDecision = { readonly kind: 'rotate'; readonly next: Session } | { readonly kind: 'refuse' } | { readonly kind: 'revoke' };

/** A refresh token that comes in. It is known to have been made for this session. */
export interface RefreshRequest {
  readonly hash: string;
  /** The client that sent it, and proved to be it. */
  readonly client: string;
  readonly now: number;
  /** The token that would be handed out. */
  readonly successor: { readonly hash: string; readonly expiresAt: number };
  /** How long the access tokens handed out so far may still last at most. */
  readonly accessMs: number;
}

/** Decides on a refresh token. */
export function decideRefresh(session: Session, request: RefreshRequest): RefreshDecision {
  const { hash, client, now, successor } = request;
  const sameClient = client === session.client;
  // The session's own end is the most a successor can have.
  const over = now >= successor.expiresAt;
  const next = { ...session, pair: session.pair + 1, refresh: successor, used: false };
  if (hash === session.refresh?.hash) {
    if (!sameClient || now >= session.refresh.expiresAt || over) return { kind: 'refuse' };
    return { kind: 'rotate', next: { ...next, spent: { hash, at: now }, ended: session.ended.filter((range) => range.until > now) } };
  }
  const lostAnswer = sameClient && hash === session.spent?.hash && isRecent(now - session.spent.at) && !session.used;
  if (!lostAnswer) return { kind: 'revoke' };
  if (over) return { kind: 'refuse' };
  return { kind: 'rotate', next: { ...next, ended: withEnded(session.ended, { from: session.pair, to: session.pair, until: now + request.accessMs }, now) } };
}

/** Whether a token was spent so short a while ago. Far ahead of now it was not: the clock has been set back, which must not lengthen the grace. */
const isRecent = (age: number): boolean => age >= -CLOCK_SLACK_MS && age <= GRACE_MS;

/** Whether the access token of this pair still counts. */
export function pairCounts(session: Session, pair: number): boolean {
  return pair <= session.pair && !session.ended.some((range) => range.from <= pair && pair <= range.to);
}

/**
 * Whether using this pair's access token must be written down, because the token that it came for might come back. Also when that was spent far ahead of now:
 * a clock that was set back comes there again.
 */
export function useMatters(session: Session, pair: number, now: number): boolean {
  return pair === session.pair && !session.used && session.spent !== null && now - session.spent.at <= GRACE_MS + CLOCK_SLACK_MS;
}

function withEnded(ended: readonly EndedPairs[], added: EndedPairs, now: number): EndedPairs[] {
  const ranges = ended.filter((range) => range.until > now);
  const last = ranges.at(-1);
  if (last !== undefined && last.to + 1 === added.from) ranges.splice(-1, 1, { ...added, from: last.from });
  else ranges.push(added);
  const [first, second] = ranges;
  if (ranges.length > MAX_RANGES && first !== undefined && second !== undefined) ranges.splice(0, 2, { ...second, from: first.from });
  return ranges;
}
