/**
 * Every error of the API, with its status and exact message (spec 7, decisions 1 to 7). No other file knows statuses.
 */
import { inAscii, shortened } from '../../lib/quotedText.js';
import { EventTooLargeError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { Refusal } from '../../domain/refusal.js';
import { type RatedCode, retryAfterOf } from './repeats.js';

/** Status and message. An empty message is made where the error is raised. */
export const ERRORS = {
  authentication_failed: [401, 'Authentication failed.'],
  forbidden: [403, 'Forbidden.'],
  not_found: [404, 'Not found.'],
  method_not_allowed: [405, 'Method not allowed.'],
  malformed_json: [400, 'Malformed JSON.'],
  invalid_idempotency_key: [400, 'Invalid idempotency key.'],
  invalid_position: [400, 'Invalid position.'],
  unsupported_grant_type: [400, 'Unsupported grant type.'],
  unsupported_content_type: [415, 'Unsupported content type.'],
  request_too_large: [413, 'Request too large.'],
  request_in_progress: [409, 'Request in progress.'],
  schema: [422, ''],
  unknown_embed: [422, ''],
  invalid_tile: [422, 'Invalid tile.'],
  invalid_signature: [400, 'Invalid signature.'],
  invalid_event: [400, 'Invalid event.'],
  too_many_requests: [429, 'Too many requests.'],
  product_not_found: [404, 'Product not found'],
  category_not_found: [404, 'Category not found'],
  projection_not_found: [404, 'Projection not found'],
  task_not_found: [404, 'Task not found'],
  voucher_not_found: [404, 'Voucher not found'],
  redeemed_gift_has_no_codes: [422, 'gift already redeemed.'],
  payment_declined: [402, 'Payment declined.'],
  payment_needs_authentication: [402, 'Payment needs authentication.'],
  projection_busy: [409, ''],
  projection_refused: [422, ''],
  internal: [500, 'Internal error.'],
  unavailable: [503, 'Service unavailable.'],
  // Codes of `Refusal`.
  gift_not_found: [404, 'gift not found'],
  transaction_not_found: [404, 'transaction not found'],
  redemption_not_found: [404, 'Redemption not found'],
  cannot_redeem: [403, 'Cannot redeem this gift.'],
  cannot_unredeem: [403, 'Cannot unredeem this gift.'],
  cannot_claim: [403, 'Cannot claim this gift.'],
  gift_already_redeemed: [405, 'gift already redeemed.'],
  gift_already_claimed: [405, 'gift already claimed.'],
  gift_expired: [405, 'gift is expired and cannot be redeemed.'],
  gift_not_paid: [405, 'gift is not paid for yet.'],
  gift_cancelled: [405, 'gift is cancelled and cannot be redeemed.'],
  gift_blocked: [405, 'gift is blocked.'],
  gift_has_voucher: [409, 'a voucher code of this gift is out.'],
  gift_has_no_receiver: [409, 'gift has no receiver.'],
  gift_being_told: [409, 'the receiver is still being told.'],
  invalid_expiry_date: [
    422,
    'expiry_date must be a day to come, later than the present one and at most ten years ahead.',
  ],
  parked_work_not_found: [404, 'Parked work not found'],
  parked_work_ambiguous: [409, 'several pieces of parked work wait here: name one by its id.'],
  work_retried: [409, 'this work has been retried.'],
  work_discarded: [409, 'this work was discarded.'],
  gift_not_redeemed: [422, 'gift not redeemed.'],
  invalid_location: [422, 'Invalid location.'],
  invalid_segment: [422, 'Invalid segment.'],
  voucher_not_available: [422, 'Voucher not available.'],
  invalid_product: [422, 'Invalid product.'],
  invalid_payment_reference: [422, 'Invalid payment reference.'],
  cannot_use_payment_method: [403, 'Cannot use this payment method.'],
  amount_too_small: [422, 'Amount too small: a card is charged at least 0.30.'],
  amount_too_large: [422, 'Amount too large: a card is charged at most 999999.99.'],
  receiver_not_found: [422, 'Receiver not found.'],
  invalid_phone_number: [422, 'Invalid phone number.'],
  transaction_pending: [409, 'transaction is not settled yet.'],
  gift_not_in_transaction: [422, 'gift not in this transaction.'],
  gift_already_refunded: [409, 'gift already refunded.'],
  nothing_to_refund: [409, 'nothing to refund.'],
  gift_code_out: [409, 'gift has a voucher: say voided once its code is worthless.'],
  gift_disputed: [409, "gift's payment is disputed."],
  gift_already_cancelled: [409, 'gift is cancelled already.'],
  idempotency_key_reused: [422, 'Idempotency key already used with another request.'],
} as const satisfies Record<Refusal['code'] | RatedCode, readonly [number, string]>;

export type ErrorCode = keyof typeof ERRORS;

/** An error of the HTTP layer, with headers, and a message where the table has none. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  /** Fields besides `error`, for this caller alone: never stored, but made again for a repeated request. */
  readonly more: object | undefined;
  constructor(
    code: ErrorCode,
    options: { message?: string; headers?: Readonly<Record<string, string>>; more?: object } = {},
  ) {
    super(options.message ?? ERRORS[code][1]);
    this.code = code;
    this.headers = options.headers ?? {};
    this.more = options.more;
  }
}

/** Names the field that an error is about: `purchase.receivers[1].phone_number` (docs/decisions.md 1). */
export const FIELD_HEADER = 'Gift-Error-Field';

/**
 * A field's name as a header: printable ASCII, at most 256 characters. None for the empty name: the body or query
 * itself.
 */
export function fieldHeader(field: string): Readonly<Record<string, string>> {
  return field === '' ? {} : { [FIELD_HEADER]: inAscii(shortened(field, 255)) };
}

/** A fault of one field. `fault`: the message after the field's name. */
export function faultOf(field: string, fault: string): HttpError {
  return new HttpError('schema', { message: `${field} ${fault}`, headers: fieldHeader(field) });
}

/** The caller's answer to an error. `unforeseen`: to be logged. */
export interface ErrorAnswer {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly more?: object;
  readonly unforeseen: boolean;
}

/** Only errors meant for callers show their message. */
export function answerOf(error: unknown): ErrorAnswer {
  if (error instanceof HttpError) {
    const [status] = ERRORS[error.code];
    return {
      status,
      code: error.code,
      message: error.message,
      headers: error.headers,
      unforeseen: false,
      ...(error.more === undefined ? {} : { more: error.more }),
    };
  }
  if (error instanceof Refusal) {
    return table(error.code, { ...retryAfterOf(error.code), ...fieldHeader(error.field) }, false);
  }
  if (error instanceof UnavailableError) return table('unavailable', { 'Retry-After': '1' }, true);
  if (error instanceof EventTooLargeError) return table('request_too_large', {}, false);
  return table('internal', {}, true);
}

function table(code: ErrorCode, headers: Readonly<Record<string, string>>, unforeseen: boolean): ErrorAnswer {
  const [status, message] = ERRORS[code];
  return { status, code, message, headers, unforeseen };
}
