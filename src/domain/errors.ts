/**
 * Every error that a caller is told, one row each (docs/api/errors.md#codes, docs/api/errors.md#general-errors). No
 * other file defines a status or a message. The table is in the domain because the domain refuses by its codes, and
 * because the API and the command line show its messages.
 */

/**
 * What a repetition of the request gets (docs/api/errors.md, docs/api/conventions.md#kept-refusals).
 * - `kept`: the same idempotency key gets the same answer for 24 hours. Only a deliberate act (an import, an unredeem,
 *   support) could change it. Callers have acted on the refusal, so a delayed duplicate must not succeed.
 * - `open`: a new attempt, which succeeds once the error's cause is gone. A late effect is harmless.
 * - `faulty`: a new attempt, which fails again: the request itself must be changed.
 * - `unknown`: a new attempt. The first one may have had its effect, which the same key does not repeat.
 * - a number: a new attempt. The operation in progress ends by itself: `Retry-After`, in seconds, unless the place that
 *   raises the error knows it better.
 */
type Repeat = 'kept' | 'open' | 'faulty' | 'unknown' | number;

/**
 * A row. An empty message is made where the error is raised. `models`: the read models from which the error is decided,
 * rather than from the request and streams. It is answered only once they show the whole log (`pipeline.ts`). A read
 * model that only some routes read counts only where the request's route reads it.
 */
export type ErrorRow<Model extends string = string> = readonly [
  status: number,
  message: string,
  repeat: Repeat,
  models?: readonly Model[],
];

type Rows = Readonly<Record<string, ErrorRow>>;

/** The domain's refusals of a command. */
export const REFUSALS = {
  // A redemption's id names its gift, too, where the route reads redemptions.
  gift_not_found: [404, 'gift not found', 'kept', ['redemptions']],
  transaction_not_found: [404, 'transaction not found', 'kept'],
  redemption_not_found: [404, 'Redemption not found', 'kept'],
  // An import of the catalogue may change who may redeem.
  cannot_redeem: [403, 'Cannot redeem this gift.', 'kept', ['catalogue']],
  cannot_unredeem: [403, 'Cannot unredeem this gift.', 'kept', ['catalogue']],
  cannot_claim: [403, 'Cannot claim this gift.', 'kept'],
  staff_receives_no_gifts: [403, 'Staff accounts receive no gifts.', 'open', ['accounts']],
  gift_already_redeemed: [405, 'gift already redeemed.', 'kept'],
  gift_already_claimed: [405, 'gift already claimed.', 'kept'],
  // After an extension by support, a new key redeems the gift.
  gift_expired: [405, 'gift is expired and cannot be redeemed.', 'kept'],
  // Charges usually settle within seconds.
  gift_not_paid: [405, 'gift is not paid for yet.', 2],
  gift_cancelled: [405, 'gift is cancelled and cannot be redeemed.', 'kept'],
  gift_blocked: [405, 'gift is blocked.', 'kept'],
  // Refusals of support actions (409) are not stored: a repeat decides by the present state, and has one effect in the
  // log.
  gift_has_voucher: [409, 'a voucher code of this gift is out.', 'open'],
  gift_has_no_receiver: [409, 'gift has no receiver.', 'open'],
  notification_pending: [409, 'a notification is still under way.', 1],
  // The allowed days change with time.
  invalid_expiry_date: [
    422,
    'expiry_date must be a day to come, later than the present one and at most ten years ahead.',
    'open',
  ],
  parked_work_not_found: [404, 'Parked work not found', 'kept'],
  parked_work_ambiguous: [409, 'several pieces of parked work wait here: name one by its id.', 'open'],
  work_retried: [409, 'this work has been retried.', 'open'],
  work_discarded: [409, 'this work was discarded.', 'open'],
  redemption_voided: [422, 'Redemption voided.', 'kept'],
  gift_not_redeemed: [422, 'gift not redeemed.', 'kept'],
  invalid_location: [422, 'Invalid location.', 'kept', ['catalogue']],
  // A gift has one voucher: a repeat may make it once the pool is filled or the segment imported.
  invalid_segment: [422, 'Invalid segment.', 'open', ['catalogue']],
  voucher_not_available: [422, 'Voucher not available.', 'open', ['catalogue', 'voucherCodes']],
  invalid_product: [422, 'Invalid product.', 'kept', ['catalogue']],
  invalid_payment_reference: [422, 'Invalid payment reference.', 'kept'],
  cannot_use_payment_method: [403, 'Cannot use this payment method.', 'kept'],
  amount_too_small: [422, 'Amount too small: a card is charged at least 0.30.', 'kept', ['catalogue']],
  amount_too_large: [422, 'Amount too large: a card is charged at most 999999.99.', 'kept', ['catalogue']],
  receiver_not_found: [422, 'Receiver not found.', 'kept'],
  // The allowed times change with time.
  invalid_send_at: [
    422,
    'send_at must be a time with its zone, to come, at most 366 days ahead and no later than the gifts expire.',
    'open',
  ],
  nobody_to_send_to: [422, 'send_at needs a receiver.', 'kept'],
  nothing_to_authenticate: [409, 'this purchase does not wait for its buyer.', 'open'],
  nothing_to_send: [409, 'nothing to send: it was sent, or never scheduled.', 'open'],
  person_not_found: [404, 'Person not found', 'open'],
  number_of_user: [409, 'this number is that of a user: erase the user.', 'open'],
  erasure_not_found: [404, 'Erasure not found', 'open'],
  erasure_started: [409, 'this erasure has started and cannot be withdrawn.', 'open'],
  erasure_of_staff: [409, 'staff and users of merchants are erased once an import has retired them.', 'open'],
  another_user_required: [403, 'this takes another user of support.', 'open'],
  invalid_phone_number: [422, 'Invalid phone number.', 'kept'],
  transaction_pending: [409, 'transaction is not settled yet.', 1],
  gift_not_in_transaction: [422, 'gift not in this transaction.', 'kept'],
  gift_already_refunded: [409, 'gift already refunded.', 'open'],
  nothing_to_refund: [409, 'nothing to refund.', 'open'],
  gift_code_out: [409, 'gift has a voucher: say voided once its code is worthless.', 'open'],
  // Disputes take days or weeks.
  gift_disputed: [409, "gift's payment is disputed.", 3_600],
  gift_already_cancelled: [409, 'gift is cancelled already.', 'open'],
  gift_already_replaced: [409, 'gift was replaced by another one already.', 'open'],
  gift_is_replacement: [
    409,
    'gift was given at no charge in place of another one: it is neither replaced nor refunded.',
    'open',
  ],
  money_went_back: [409, 'money of this purchase was given back at the provider: it may be for this gift.', 'open'],
  webhook_endpoint_not_found: [404, 'Webhook endpoint not found', 'open', ['webhookEndpoints']],
  webhook_endpoint_disabled: [409, 'webhook endpoint is disabled.', 'open'],
  too_many_webhook_endpoints: [409, 'at most 20 webhook endpoints.', 'open', ['webhookEndpoints']],
  too_many_webhook_requests: [
    429,
    'too many requests of this kind for this webhook endpoint today: docs/limits.md says how many.',
    3_600,
  ],
  event_not_found: [422, 'Event not found', 'open', ['feed', 'webhookEndpoints']],
  redeemed_too_often: [
    409,
    'this user has redeemed this gift 50 times: another user of the merchant must redeem it.',
    'open',
  ],
  voided_too_often: [
    409,
    'this user has cancelled 50 keys of this gift: look the key up, and reverse what it redeemed by the id of that.',
    'open',
  ],
  rescheduled_too_often: [409, 'send_at was changed 50 times: it can only be now or null.', 'open'],
  supported_too_often: [
    409,
    'support has done this 50 times: refund the gifts, or ask those who run the service.',
    'open',
  ],
  idempotency_key_reused: [422, 'Idempotency key already used with another request.', 'faulty'],
} as const satisfies Rows;

export type RefusalCode = keyof typeof REFUSALS;

export const ERRORS = {
  authentication_failed: [401, 'Authentication failed.', 'faulty'],
  forbidden: [403, 'Forbidden.', 'faulty'],
  not_found: [404, 'Not found.', 'faulty'],
  method_not_allowed: [405, 'Method not allowed.', 'faulty'],
  malformed_json: [400, 'Malformed JSON.', 'faulty'],
  invalid_idempotency_key: [400, 'Invalid idempotency key.', 'faulty'],
  invalid_position: [400, 'Invalid position.', 'faulty'],
  unsupported_grant_type: [400, 'Unsupported grant type.', 'faulty'],
  unsupported_content_type: [415, 'Unsupported content type.', 'faulty'],
  request_too_large: [413, 'Request too large.', 'faulty'],
  // The answer says how long the key is held at most.
  request_in_progress: [409, 'Request in progress.', 1],
  schema: [422, '', 'faulty'],
  unknown_embed: [422, '', 'faulty'],
  invalid_tile: [422, 'Invalid tile.', 'faulty'],
  invalid_signature: [400, 'Invalid signature.', 'faulty'],
  invalid_event: [400, '', 'faulty'],
  too_many_requests: [429, 'Too many requests.', 1],
  product_not_found: [404, 'Product not found', 'open', ['catalogue']],
  category_not_found: [404, 'Category not found', 'open', ['catalogue']],
  projection_not_found: [404, 'Projection not found', 'faulty'],
  task_not_found: [404, 'Task not found', 'faulty'],
  voucher_not_found: [404, 'Voucher not found', 'open'],
  redeemed_gift_has_no_codes: [422, 'gift already redeemed.', 'open'],
  payment_declined: [402, 'Payment declined.', 'kept'],
  payment_needs_authentication: [402, 'Payment needs authentication.', 'kept'],
  projection_busy: [409, '', 5],
  erasure_waits: [409, '', 60],
  // The obstacle may be gone at the next attempt.
  projection_refused: [422, '', 'open'],
  reset_refused: [409, '', 'open'],
  no_console_client: [
    409,
    'import an active client with the id console, which staff may use: the console logs in through it.',
    'open',
    ['accounts'],
  ],
  internal: [500, 'Internal error.', 'unknown'],
  unavailable: [503, 'Service unavailable.', 1],
  // An operator decides when outward work resumes.
  outward_work_held: [503, 'Nothing is charged or sent here until an operator resumes it.', 60],
  ...REFUSALS,
  // Errors of requests that never reach the application.
  malformed_request: [400, 'Malformed request.', 'faulty'],
  request_timed_out: [408, 'Request timed out.', 'unknown'],
  headers_too_large: [431, 'Request too large.', 'faulty'],
} as const satisfies Rows;

export type ErrorCode = keyof typeof ERRORS;
