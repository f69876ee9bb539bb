/** How errors become answers; their table is `domain/errors.ts`. */
import { inAscii, shortened } from '../../lib/quotedText.js';
import { DeadlineError, NoRespondersError, RemoteError } from '../../ports/bus.js';
import { ConflictError, EventTooLargeError } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { LeaseHeldError } from '../../runtime/coordination/index.js';
import { LeaseLostError, SwapOutdatedError } from '../../runtime/readmodels/index.js';
import { type ErrorCode, type ErrorRow, ERRORS } from '../../domain/errors.js';
import { Refusal } from '../../domain/refusal.js';
import { EvidenceError } from '../../ops/evidence/index.js';
import type { ReadModels } from '../../projections/index.js';

/** The compiler checks here that the table names read models that exist. */
const rowOf = (code: ErrorCode): ErrorRow<keyof ReadModels> => ERRORS[code];

/** Whether an idempotency key keeps the error as its answer. */
export const isKept = (code: ErrorCode): boolean => rowOf(code)[2] === 'kept';

/** The read models from which the error is decided. */
export const basisOf = (code: ErrorCode): readonly (keyof ReadModels)[] => rowOf(code)[3] ?? [];

/** The header `Retry-After`, in seconds (RFC 9110 10.2.3); empty for errors without a waiting time. */
export function retryAfterOf(code: ErrorCode): Readonly<Record<string, string>> {
  const [, , repeat] = rowOf(code);
  return typeof repeat === 'number' ? { 'Retry-After': String(repeat) } : {};
}

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
    this.headers = { ...retryAfterOf(code), ...options.headers };
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
  if (error instanceof HttpError)
    return { ...answerWith(error.code, error.headers), message: error.message, more: error.more };
  if (error instanceof Refusal)
    return answerWith(error.code, { ...retryAfterOf(error.code), ...fieldHeader(error.field) });
  if (error instanceof EventTooLargeError) return answerWith('request_too_large');
  // An altered log or tile is answered as other damaged data is (docs/design.md#damaged-reads).
  const passing = error instanceof EvidenceError || Object.values(PASSING).some((type) => error instanceof type);
  return { ...answerWith(passing ? 'unavailable' : 'internal'), unforeseen: true };
}

function answerWith(code: ErrorCode, headers = retryAfterOf(code)): ErrorAnswer {
  const [status, message] = ERRORS[code];
  return {
    status,
    code,
    message,
    headers: { [CODE_HEADER]: code, ...headers },
    unforeseen: false,
  };
}
