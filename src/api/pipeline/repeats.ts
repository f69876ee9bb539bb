/**
 * What each error means for a repeated request: whether its idempotency key gives it again, when asking again is worth
 * while, and what it rests on (docs/decisions.md 1). The table is complete at compile time: an error of `errors.ts`
 * that is missing here does not compile, nor does one that is here alone.
 */

/**
 * What a repeat with the same key meets.
 * - `kept`: the same answer for 24 hours. Only another deliberate act could change it (an import, an unredeem,
 * support), and a repeat is not that act:
 *   callers have acted on the refusal, so a duplicate that was delayed on its way must not have the effect after all.
 * - `open`: the request is looked at anew. It never got as far as a decision, or having it done later harms nobody.
 * - `{ retryAfter }`: as `open`, and the answer says when to ask again, in seconds. It waits for something under way,
 * which time alone ends.
 */
type Repeat = 'kept' | 'open' | { readonly retryAfter: number };

/**
 * What an error rests on.
 * - `request`: the request itself, its caller, or the state of this service.
 * - `log`: streams, read when it was decided.
 * - `read models`: what these lack or show. It is told only once they show the whole log (`pipeline.ts`).
 */
type Basis = 'request' | 'log' | 'read models';

/** A charge settles within seconds as a rule. */
const SETTLING = { retryAfter: 2 };
const MOMENTS = { retryAfter: 1 };
/** Days or weeks; whoever polls need not do so every second. */
const DISPUTE = { retryAfter: 3_600 };

const REPEATS = {
  authentication_failed: ['request', 'open'],
  forbidden: ['request', 'open'],
  not_found: ['request', 'open'],
  method_not_allowed: ['request', 'open'],
  malformed_json: ['request', 'open'],
  invalid_idempotency_key: ['request', 'open'],
  invalid_position: ['request', 'open'],
  unsupported_grant_type: ['request', 'open'],
  unsupported_content_type: ['request', 'open'],
  request_too_large: ['request', 'open'],
  // Says for itself when to ask again (`idempotency.ts`).
  request_in_progress: ['request', 'open'],
  schema: ['request', 'open'],
  unknown_embed: ['request', 'open'],
  invalid_tile: ['request', 'open'],
  invalid_signature: ['request', 'open'],
  invalid_event: ['request', 'open'],
  too_many_requests: ['request', 'open'],
  product_not_found: ['read models', 'open'],
  category_not_found: ['read models', 'open'],
  projection_not_found: ['request', 'open'],
  task_not_found: ['request', 'open'],
  voucher_not_found: ['log', 'open'],
  redeemed_gift_has_no_codes: ['log', 'open'],
  payment_declined: ['log', 'kept'],
  payment_needs_authentication: ['log', 'kept'],
  projection_busy: ['request', 'open'],
  // A rebuild that was refused is started anew by whoever asks again: what stood in its way may be gone.
  projection_refused: ['request', 'open'],
  internal: ['request', 'open'],
  unavailable: ['request', 'open'],
  gift_not_found: ['read models', 'kept'],
  transaction_not_found: ['read models', 'kept'],
  redemption_not_found: ['log', 'kept'],
  // Whose gift it is, and who honours it, follow the catalogue: an import changes it.
  cannot_redeem: ['read models', 'kept'],
  cannot_unredeem: ['read models', 'kept'],
  cannot_claim: ['log', 'kept'],
  gift_already_redeemed: ['log', 'kept'],
  gift_already_claimed: ['log', 'kept'],
  // Time only makes it older; support may extend it, and who tries again then does so with another key.
  gift_expired: ['log', 'kept'],
  gift_not_paid: ['log', SETTLING],
  gift_cancelled: ['log', 'kept'],
  gift_blocked: ['log', 'kept'],
  // Of what support does (409) nothing is kept: a repeat looks at how things stand now, and the effect is one in the
  // log.
  gift_has_voucher: ['log', 'open'],
  gift_has_no_receiver: ['log', 'open'],
  gift_being_told: ['log', MOMENTS],
  // What is a day to come, and at most ten years ahead, changes with time alone.
  invalid_expiry_date: ['log', 'open'],
  parked_work_not_found: ['read models', 'kept'],
  parked_work_ambiguous: ['log', 'open'],
  work_retried: ['log', 'open'],
  work_discarded: ['log', 'open'],
  gift_not_redeemed: ['log', 'kept'],
  invalid_location: ['read models', 'kept'],
  // A gift has one voucher, whenever it is made: that a repeat makes it once the pool is filled, or the segment
  // imported, harms nobody.
  invalid_segment: ['read models', 'open'],
  voucher_not_available: ['read models', 'open'],
  invalid_product: ['read models', 'kept'],
  invalid_payment_reference: ['read models', 'kept'],
  // Prices follow the catalogue.
  amount_too_small: ['read models', 'kept'],
  amount_too_large: ['read models', 'kept'],
  cannot_use_payment_method: ['read models', 'kept'],
  receiver_not_found: ['read models', 'kept'],
  invalid_phone_number: ['request', 'kept'],
  transaction_pending: ['log', MOMENTS],
  gift_not_in_transaction: ['log', 'kept'],
  gift_already_refunded: ['log', 'open'],
  nothing_to_refund: ['log', 'open'],
  gift_code_out: ['log', 'open'],
  gift_disputed: ['log', DISPUTE],
  gift_already_cancelled: ['log', 'open'],
  idempotency_key_reused: ['request', 'open'],
} as const satisfies Record<string, readonly [Basis, Repeat]>;

/** The name of an error. */
export type RatedCode = keyof typeof REPEATS;

/** Whether an idempotency key gives this error again, for 24 hours. */
export const isKept = (code: RatedCode): boolean => REPEATS[code][1] === 'kept';

/** Whether read models must show the whole log before this error is told. */
export const restsOnReadModels = (code: RatedCode): boolean => REPEATS[code][0] === 'read models';

/** The header that says when something under way may have ended, in seconds (RFC 9110 10.2.3). */
export function retryAfterOf(code: RatedCode): Readonly<Record<string, string>> {
  const repeat: Repeat = REPEATS[code][1];
  return typeof repeat === 'object' ? { 'Retry-After': String(repeat.retryAfter) } : {};
}
