/**
 * Every error of the API, with its status and exact message (docs/api/errors.md#codes,
 * docs/api/errors.md#general-errors). No other file defines statuses.
 */
import { inAscii, shortened } from '../../lib/quotedText.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../ports/bus.js';
import { ConflictError, EventTooLargeError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { LeaseHeldError } from '../../runtime/coordination/index.js';
import { LeaseLostError, SwapOutdatedError } from '../../runtime/readmodels/index.js';
import { Refusal, type RefusalCode, REFUSALS } from '../../domain/refusal.js';
import { type RatedCode, retryAfterOf } from './repeats.js';

/** Status and message of the HTTP layer's own errors. Empty messages are made where the error is raised. */
const RAISED_HERE = {
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
  erasure_waits: [409, ''],
  projection_refused: [422, ''],
  reset_refused: [409, ''],
  internal: [500, 'Internal error.'],
  unavailable: [503, 'Service unavailable.'],
  outward_work_held: [503, 'Nothing is charged or sent here until an operator resumes it.'],
} as const satisfies Record<Exclude<RatedCode, RefusalCode>, readonly [number, string]>;

/** The status of each refusal; the messages are in `domain/refusal.ts`. */
const REFUSED_WITH = {
  gift_not_found: 404,
  transaction_not_found: 404,
  redemption_not_found: 404,
  cannot_redeem: 403,
  cannot_unredeem: 403,
  cannot_claim: 403,
  staff_receives_no_gifts: 403,
  gift_already_redeemed: 405,
  gift_already_claimed: 405,
  gift_expired: 405,
  gift_not_paid: 405,
  gift_cancelled: 405,
  gift_blocked: 405,
  gift_has_voucher: 409,
  gift_has_no_receiver: 409,
  notification_pending: 409,
  invalid_expiry_date: 422,
  parked_work_not_found: 404,
  parked_work_ambiguous: 409,
  work_retried: 409,
  work_discarded: 409,
  redemption_voided: 422,
  gift_not_redeemed: 422,
  invalid_location: 422,
  invalid_segment: 422,
  voucher_not_available: 422,
  invalid_product: 422,
  invalid_payment_reference: 422,
  cannot_use_payment_method: 403,
  amount_too_small: 422,
  amount_too_large: 422,
  receiver_not_found: 422,
  invalid_send_at: 422,
  nobody_to_send_to: 422,
  nothing_to_send: 409,
  person_not_found: 404,
  number_of_user: 409,
  erasure_not_found: 404,
  erasure_started: 409,
  erasure_of_staff: 409,
  another_user_required: 403,
  invalid_phone_number: 422,
  transaction_pending: 409,
  gift_not_in_transaction: 422,
  gift_already_refunded: 409,
  nothing_to_refund: 409,
  gift_code_out: 409,
  gift_disputed: 409,
  gift_already_cancelled: 409,
  webhook_endpoint_not_found: 404,
  webhook_endpoint_disabled: 409,
  too_many_webhook_endpoints: 409,
  too_many_webhook_requests: 429,
  event_not_found: 422,
  redeemed_too_often: 409,
  voided_too_often: 409,
  rescheduled_too_often: 409,
  supported_too_often: 409,
  idempotency_key_reused: 422,
} as const satisfies Record<RefusalCode, number>;

export type ErrorCode = keyof typeof RAISED_HERE | RefusalCode;

export const ERRORS = {
  ...RAISED_HERE,
  ...Object.fromEntries(
    Object.entries(REFUSED_WITH).map(([code, status]) => [code, [status, REFUSALS[code as RefusalCode]]]),
  ),
} as Readonly<Record<ErrorCode, readonly [status: number, message: string]>>;

/** An error that is answered with its code's status. `message` is for codes without a message in the table. */
export class HttpError extends Error {
  override readonly name = 'HttpError';
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Fields of the body alongside `error`, for this caller only: never stored, but made again for a repeated request.
   */
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

/** Header with the code of an error, on every error answer (docs/api/errors.md). */
export const CODE_HEADER = 'Error-Code';

/** Header with the faulty field: `purchase.receivers[1].phone_number` (docs/api/errors.md#field-of-an-error). */
export const FIELD_HEADER = 'Error-Field';

/**
 * Header that names the faulty field in printable ASCII, at most 256 characters. There is none for the body or query
 * itself.
 */
export function fieldHeader(field: string): Readonly<Record<string, string>> {
  return field === '' ? {} : { [FIELD_HEADER]: inAscii(shortened(field, 255)) };
}

export function faultOf(field: string, fault: string): HttpError {
  return new HttpError('schema', { message: `${field} ${fault}`, headers: fieldHeader(field) });
}

type PassingError =
  | ConflictError
  | DeadlineError
  | LeaseHeldError
  | LeaseLostError
  | NoRespondersError
  | RemoteError
  | SwapOutdatedError
  | UnavailableError;

/**
 * Temporary errors: the same request may succeed in a moment. `test/api/pipeline/errors.test.ts` classifies each error
 * class in `src`.
 */
export const PASSING = {
  ConflictError,
  DeadlineError,
  LeaseHeldError,
  LeaseLostError,
  NoRespondersError,
  RemoteError,
  SwapOutdatedError,
  UnavailableError,
} as const satisfies { readonly [E in PassingError as E['name']]: abstract new (...args: never[]) => E };

/** Answer to an error. `unforeseen`: the error needs an entry in the service's log. */
export interface ErrorAnswer {
  readonly status: number;
  readonly code: ErrorCode;
  readonly message: string;
  /** Headers of the error, including `Error-Code`. */
  readonly headers: Readonly<Record<string, string>>;
  readonly more?: object | undefined;
  readonly unforeseen: boolean;
}

/** Answer to any error. Only errors that are meant for callers show their message. */
export function answerOf(error: unknown): ErrorAnswer {
  if (error instanceof HttpError) {
    const [status] = ERRORS[error.code];
    return {
      status,
      code: error.code,
      message: error.message,
      headers: { [CODE_HEADER]: error.code, ...error.headers },
      unforeseen: false,
      more: error.more,
    };
  }
  if (error instanceof Refusal) {
    return table(error.code, { ...retryAfterOf(error.code), ...fieldHeader(error.field) }, false);
  }
  if (error instanceof EventTooLargeError) return table('request_too_large', {}, false);
  if (Object.values(PASSING).some((type) => error instanceof type))
    return table('unavailable', { 'Retry-After': '1' }, true);
  return table('internal', {}, true);
}

function table(code: ErrorCode, headers: Readonly<Record<string, string>>, unforeseen: boolean): ErrorAnswer {
  const [status, message] = ERRORS[code];
  return { status, code, message, headers: { [CODE_HEADER]: code, ...headers }, unforeseen };
}
