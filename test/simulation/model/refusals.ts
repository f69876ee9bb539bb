/** Answers that the model expects, and why a gift can't be used. */
import { type GiftState, isExpired, isRedeemed } from './giftState.js';
import type { Expected, Pattern } from './pattern.js';

/** One way in which a request may end. */
export interface Possible {
  readonly state: GiftState;
  readonly answer: Expected;
  /** Whether an idempotency key keeps it (docs/api/conventions.md#kept-refusals). */
  readonly kept: boolean;
}

/** A first answer, no replay. */
export const first = (status: number, body: Pattern): Expected => ({
  status,
  body,
  headers: { 'idempotent-replayed': null },
});

export const error = (status: number, message: string): Expected => first(status, { error: message });

const withHeaders = (answer: Expected, ...names: readonly string[]): Expected => ({
  ...answer,
  headers: { ...answer.headers, ...Object.fromEntries(names.map((name) => [name, '*'])) },
});

export const notAllowed = (message: string): Expected => withHeaders(error(405, message), 'allow');

export const GIFT_NOT_FOUND = error(404, 'gift not found');
export const NOT_PAID = withHeaders(error(405, 'gift is not paid for yet.'), 'allow', 'retry-after');
export const ALREADY_REDEEMED = notAllowed('gift already redeemed.');
export const CANCELLED = notAllowed('gift is cancelled and cannot be redeemed.');
export const EXPIRED = notAllowed('gift is expired and cannot be redeemed.');
export const BLOCKED = notAllowed('gift is blocked.');
export const CANNOT_REDEEM = error(403, 'Cannot redeem this gift.');
export const KEY_REUSED = error(422, 'Idempotency key already used with another request.');
/** A notification is sent at the time of support's action. */
export const NOTIFICATION_PENDING = withHeaders(error(409, 'a notification is still under way.'), 'retry-after');

/** Why a gift can't be used (docs/api/gifts.md#states); `undefined` where it can. */
export function unusable(state: GiftState): Expected | undefined {
  if (state.payment === 'pending') return NOT_PAID;
  if (isRedeemed(state)) return ALREADY_REDEEMED;
  if (isCancelled(state)) return CANCELLED;
  if (isExpired(state)) return EXPIRED;
  return state.blocked ? BLOCKED : undefined;
}

export function isCancelled(state: GiftState): boolean {
  return state.cancelled || state.payment === 'declined';
}

/** A refusal that changes nothing. A key keeps it, unless it waits for work in progress. */
export function refused(state: GiftState, answer: Expected, kept = answer !== NOT_PAID): Possible {
  return { state, answer, kept };
}

export function done(state: GiftState, answer: Expected): Possible {
  return { state, answer, kept: true };
}

/** The answer of a repeat. */
export function replayed(answer: Expected): Expected {
  return { ...answer, headers: { ...answer.headers, 'idempotent-replayed': 'true' } };
}
