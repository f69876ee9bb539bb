/** What an error of the client's library, or of the server, means to callers of the port. */
import { UnavailableError } from '../../ports/unavailable.js';

/** gRPC's codes, as far as they are told apart. */
const CODE = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  aborted: 10,
  unavailable: 14,
  unauthenticated: 16,
};

/**
 * The fields of a gRPC error; the library's own classes are not relied on, since an append fails with one and a read
 * with another.
 */
interface GrpcError {
  readonly code?: number;
  readonly details?: string;
  readonly metadata?: { get(name: string): (string | Buffer)[] };
}

/** The server refuses who we are. */
export class AccessRefusedError extends UnavailableError {}

/**
 * The server is of a version that is refused; `message` names the one to take. It is asked again with each call: it may
 * be replaced while the service runs.
 */
export class UnsafeServerError extends UnavailableError {
  constructor(message: string) {
    super(message, { told: 'is of a version that is refused (the log says which to take)' });
  }
}

/** A live subscription was ended by the server since its reader was slower than the appends: subscribe again. */
export class TooSlowError extends UnavailableError {}

/** The stream was deleted for good, by somebody else: the service deletes nothing. */
export class StreamDeletedError extends Error {
  constructor(stream: string) {
    super(`stream ${stream} was deleted in EventStoreDB`);
  }
}

/** True for a call that ended by its deadline: the server is silent. */
export function isDeadline(error: unknown): boolean {
  return (error as GrpcError | undefined)?.code === CODE.deadlineExceeded;
}

/** How an error is to be told. */
export interface FailureContext {
  /** The stream asked for, if one was. */
  readonly stream?: string;
  /**
   * True when what was asked changes something: unless the error shows that it never got there, its outcome is unknown.
   */
  readonly writes?: boolean;
}

/** The error to throw in place of `error`: UnavailableError, unless it is the stream's, or a mistake of ours. */
export function failureOf(error: unknown, { stream = '$all', writes = false }: FailureContext): Error {
  if (error instanceof UnavailableError || error instanceof StreamDeletedError) return error;
  // An event that is no JSON, though it says so.
  if (error instanceof SyntaxError) return error;
  if (!(error instanceof Error)) return new Error(String(error));
  const { code, details = error.message, metadata } = error as Error & GrpcError;
  const exception = metadata?.get('exception')[0]?.toString();
  const because = `EventStoreDB does not answer: ${details}`;
  if (exception === 'stream-deleted') return new StreamDeletedError(stream);
  if (exception === 'access-denied' || code === CODE.permissionDenied || code === CODE.unauthenticated) {
    return new AccessRefusedError(`EventStoreDB refuses access to ${stream}: ${details}`, { cause: error });
  }
  if (code === CODE.invalidArgument) return error;
  if (code === CODE.aborted && !writes) return new TooSlowError(because, { cause: error });
  // Not connected at all: then nothing was done. That a node leads no more it says of one append, and ends the call
  // with all that are on it: others may be stored.
  const undone = /^(No connection established|Failed to discover)/.test(details);
  return new UnavailableError(because, { outcomeUnknown: writes && !undone, cause: error });
}
