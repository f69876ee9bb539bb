/**
 * What each error means for a repeated request (docs/api/conventions.md#kept-refusals). The compiler checks that
 * exactly the errors of `errors.ts` are listed.
 */
import type { ReadModels } from '../../projections/index.js';

/**
 * Answer to a repeated request with the same key.
 * - `kept`: the same answer for 24 hours. Only a deliberate act (an import, an unredeem, support) could change it.
 *   Callers have acted on the refusal, so a delayed duplicate must not succeed.
 * - `open`: a new attempt. The first one reached no decision, or a late effect is harmless.
 * - `{ retryAfter }`: as `open`, with `Retry-After` in seconds: the operation in progress ends by itself.
 */
type Repeat = 'kept' | 'open' | { readonly retryAfter: number };

/**
 * State from which an error is decided.
 * - `request`: the request itself, its caller, or the state of this service.
 * - `log`: streams, read for the decision.
 * - names of read models: their content. The error is answered only once they show the whole log (`pipeline.ts`). A
 *   read model that only some routes read (`ReadBySome`) counts only where the request's route reads it.
 */
type Basis = 'request' | 'log' | readonly (keyof ReadModels)[];

/** Charges usually settle within seconds. */
const SETTLING = { retryAfter: 2 };
const MOMENTS = { retryAfter: 1 };
/** An operator decides when outward work resumes. */
const RESUMPTION = { retryAfter: 60 };
/** Disputes take days or weeks. */
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
  // `idempotency.ts` sets its own `Retry-After`.
  request_in_progress: ['request', 'open'],
  schema: ['request', 'open'],
  unknown_embed: ['request', 'open'],
  invalid_tile: ['request', 'open'],
  invalid_signature: ['request', 'open'],
  invalid_event: ['request', 'open'],
  too_many_requests: ['request', 'open'],
  product_not_found: [['catalogue'], 'open'],
  category_not_found: [['catalogue'], 'open'],
  projection_not_found: ['request', 'open'],
  task_not_found: ['request', 'open'],
  voucher_not_found: ['log', 'open'],
  redeemed_gift_has_no_codes: ['log', 'open'],
  payment_declined: ['log', 'kept'],
  payment_needs_authentication: ['log', 'kept'],
  projection_busy: ['request', 'open'],
  // The obstacle may be gone at the next attempt.
  projection_refused: ['request', 'open'],
  reset_refused: ['request', 'open'],
  internal: ['request', 'open'],
  unavailable: ['request', 'open'],
  outward_work_held: ['request', RESUMPTION],
  // A redemption's id names its gift, too, where the route reads redemptions.
  gift_not_found: [['redemptions'], 'kept'],
  transaction_not_found: ['log', 'kept'],
  redemption_not_found: ['log', 'kept'],
  // An import of the catalogue may change who may redeem.
  cannot_redeem: [['catalogue'], 'kept'],
  cannot_unredeem: [['catalogue'], 'kept'],
  cannot_claim: ['log', 'kept'],
  staff_receives_no_gifts: [['accounts'], 'open'],
  gift_already_redeemed: ['log', 'kept'],
  gift_already_claimed: ['log', 'kept'],
  // After an extension by support, a new key redeems the gift.
  gift_expired: ['log', 'kept'],
  gift_not_paid: ['log', SETTLING],
  gift_cancelled: ['log', 'kept'],
  gift_blocked: ['log', 'kept'],
  // Refusals of support actions (409) are not stored: a repeat decides by the present state, and has one effect in the
  // log.
  gift_has_voucher: ['log', 'open'],
  gift_has_no_receiver: ['log', 'open'],
  notification_pending: ['log', MOMENTS],
  // The allowed days change with time.
  invalid_expiry_date: ['log', 'open'],
  parked_work_not_found: ['log', 'kept'],
  parked_work_ambiguous: ['log', 'open'],
  work_retried: ['log', 'open'],
  work_discarded: ['log', 'open'],
  redemption_voided: ['log', 'kept'],
  gift_not_redeemed: ['log', 'kept'],
  invalid_location: [['catalogue'], 'kept'],
  // A gift has one voucher: a repeat may make it once the pool is filled or the segment imported.
  invalid_segment: [['catalogue'], 'open'],
  voucher_not_available: [['catalogue', 'voucherCodes'], 'open'],
  invalid_product: [['catalogue'], 'kept'],
  invalid_payment_reference: ['log', 'kept'],
  amount_too_small: [['catalogue'], 'kept'],
  amount_too_large: [['catalogue'], 'kept'],
  cannot_use_payment_method: ['log', 'kept'],
  receiver_not_found: ['log', 'kept'],
  // The allowed times change with time.
  invalid_send_at: ['log', 'open'],
  nobody_to_send_to: ['request', 'kept'],
  nothing_to_send: ['log', 'open'],
  person_not_found: ['log', 'open'],
  number_of_user: ['log', 'open'],
  erasure_not_found: ['log', 'open'],
  erasure_started: ['log', 'open'],
  erasure_of_staff: ['log', 'open'],
  another_user_required: ['log', 'open'],
  erasure_waits: ['log', 'open'],
  invalid_phone_number: ['request', 'kept'],
  transaction_pending: ['log', MOMENTS],
  gift_not_in_transaction: ['log', 'kept'],
  gift_already_refunded: ['log', 'open'],
  nothing_to_refund: ['log', 'open'],
  gift_code_out: ['log', 'open'],
  gift_disputed: ['log', DISPUTE],
  gift_already_cancelled: ['log', 'open'],
  webhook_endpoint_not_found: [['webhookEndpoints'], 'open'],
  webhook_endpoint_disabled: ['log', 'open'],
  too_many_webhook_endpoints: [['webhookEndpoints'], 'open'],
  too_many_webhook_requests: ['log', { retryAfter: 3_600 }],
  event_not_found: [['feed', 'webhookEndpoints'], 'open'],
  redeemed_too_often: ['log', 'open'],
  voided_too_often: ['log', 'open'],
  rescheduled_too_often: ['log', 'open'],
  supported_too_often: ['log', 'open'],
  idempotency_key_reused: ['request', 'open'],
} as const satisfies Record<string, readonly [Basis, Repeat]>;

export type RatedCode = keyof typeof REPEATS;

export const isKept = (code: RatedCode): boolean => REPEATS[code][1] === 'kept';

export const restsOnRequest = (code: RatedCode): boolean => REPEATS[code][0] === 'request';

/** The read models from which the error is decided; empty for `request` and `log`. */
export function basisOf(code: RatedCode): readonly (keyof ReadModels)[] {
  const [basis]: readonly [Basis, Repeat] = REPEATS[code];
  return typeof basis === 'string' ? [] : basis;
}

/** The header `Retry-After`, in seconds (RFC 9110 10.2.3); empty for errors without a waiting time. */
export function retryAfterOf(code: RatedCode): Readonly<Record<string, string>> {
  const repeat: Repeat = REPEATS[code][1];
  return typeof repeat === 'object' ? { 'Retry-After': String(repeat.retryAfter) } : {};
}
