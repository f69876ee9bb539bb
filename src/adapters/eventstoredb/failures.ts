import { UnavailableError } from '../../ports/unavailable.js';

const CODE = {
  invalidArgument: 3,
  deadlineExceeded: 4,
  permissionDenied: 7,
  aborted: 10,
  unavailable: 14,
  unauthenticated: 16,
};

/** The library throws different classes for appends and reads; only gRPC's fields are common. */
interface GrpcError {
  readonly code?: number;
  readonly details?: string;
  readonly metadata?: { get(name: string): (string | Buffer)[] };
}

export class AccessRefusedError extends UnavailableError {}

/** `message` names the version to take. Each call checks again: the server may be replaced while the service runs. */
export class UnsafeServerError extends UnavailableError {
  constructor(message: string) {
    super(message, { publicReason: 'is of a version that is refused (the log says which to take)' });
  }
}

/**
 * The server was replaced by one with other data, or lost its own: an empty volume, another installation. What it would
 * say of a stream is wrong, and what it would store is lost once the data is back. Each call checks again.
 */
export class OtherLogError extends UnavailableError {
  constructor() {
    super(
      'EventStoreDB holds another log than the one that this process opened, or none: put its data back, or stop the service and start it on another log',
      { publicReason: 'holds another log than before, or none' },
    );
  }
}

/** The subscription was slower than the appends: subscribe again. */
export class TooSlowError extends UnavailableError {}

/** The stream was deleted by another program: the service deletes nothing. */
export class StreamDeletedError extends Error {
  constructor(stream: string) {
    super(`stream ${stream} was deleted in EventStoreDB`);
  }
}

export function isDeadline(error: unknown): boolean {
  return (error as GrpcError | undefined)?.code === CODE.deadlineExceeded;
}

interface FailureContext {
  readonly stream?: string;
  /** Whether the call appends: then the outcome is unknown, unless the error shows that the call was never sent. */
  readonly writes?: boolean;
}

/** The error for a failed call: UnavailableError, unless it concerns the stream, or is a fault of this program. */
export function failureOf(error: unknown, { stream = '$all', writes = false }: FailureContext): Error {
  if (error instanceof UnavailableError || error instanceof StreamDeletedError) return error;
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
  // Without a connection nothing was done. A node that loses the leadership reports it for one append, and ends the
  // call of all: others may be stored.
  const undone = /^(No connection established|Failed to discover)/.test(details);
  return new UnavailableError(because, { outcomeUnknown: writes && !undone, cause: error });
}
