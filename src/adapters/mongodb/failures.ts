/** What the driver's errors mean to the port's callers. */
import {
  BSON,
  MongoBulkWriteError,
  MongoError,
  MongoInvalidArgumentError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
} from 'mongodb';
import type { WriteError } from 'mongodb';
import { UnavailableError } from '../../ports/unavailable.js';

/** E11000: a unique index has the value already. */
const DUPLICATE_KEY = 11_000;
/**
 * The server says that the command itself is wrong: asking again would change nothing. Everything else is the engine's
 * trouble.
 */
const REFUSALS = new Set([2, 4, 9, 14, 40, 52, 66, 67, 73, 85, 86, DUPLICATE_KEY, 10_334, 17_280, 17_419]);
/** Asked for something that isn't there. */
const NAMESPACE_NOT_FOUND = 26;
const NAMESPACE_EXISTS = 48;

/** The call's own deadline passed: a connection that falls silent can leave the driver waiting for ever. */
export class LateError extends Error {
  override readonly name = 'LateError';
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

/** No server was found to ask. A bulk write that finds none carries the reason alone. */
export function foundNoServer(error: unknown): boolean {
  return error instanceof MongoServerSelectionError || (error instanceof MongoBulkWriteError && 'reason' in error);
}

/**
 * A client that was closed, by itself too: one that finds no server while it connects for the first time. A bulk write
 * carries the message alone.
 */
export function wasClosed(error: unknown): boolean {
  return (
    error instanceof MongoTopologyClosedError ||
    (error instanceof MongoBulkWriteError && error.message === new MongoTopologyClosedError().message)
  );
}

/** Nothing was sent: no server was found, or no connection was free (an error that the driver doesn't export). */
function isNotSent(error: unknown): boolean {
  return foundNoServer(error) || (error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError');
}

/**
 * A connection's own error, which the driver hands on as it is when it writes into one that the server has just closed:
 * `EPIPE`, `ECONNRESET`, `ERR_STREAM_…`.
 */
function isConnectionError(error: unknown): error is NodeJS.ErrnoException {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(E(?!RR_)[A-Z]+|ERR_(STREAM|SOCKET)_[A-Z_]+)$/.test(error.code)
  );
}

/**
 * What a failed call is thrown as. Whether the server answered can't be told from an error's class, so the outcome of
 * what writes is unknown unless nothing was sent.
 */
export function failureOf(error: unknown, writes: boolean): unknown {
  if (
    error instanceof UnavailableError ||
    error instanceof BSON.BSONError ||
    error instanceof MongoInvalidArgumentError
  )
    return error;
  if (!(error instanceof MongoError) && !(error instanceof LateError) && !isConnectionError(error)) return error;
  if (isRefusal(error)) return error;
  return new UnavailableError(`the read store did not answer: ${error.message}`, {
    outcomeUnknown: writes && !isNotSent(error),
    cause: error,
  });
}

/** Of a bulk write, an `_id` that stands already is none: it is newer, and what went wrong is what else did. */
function isRefusal(error: Error): boolean {
  if (error instanceof MongoBulkWriteError)
    return (
      writeErrorsOf(error).some((one) => REFUSALS.has(one.code) && !isTakenId(one)) &&
      error.result.getWriteConcernError() === undefined
    );
  return error instanceof MongoServerError && typeof error.code === 'number' && REFUSALS.has(error.code);
}

/** There is another value under this unique `_id`. */
export function isDuplicateId(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY && isIdIndex(error.errmsg ?? error.message);
}

/** The collection or index isn't there. */
export function isMissing(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === NAMESPACE_NOT_FOUND || error.message === 'ns not found');
}

/** The collection is there already. */
export function isPresent(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === NAMESPACE_EXISTS;
}

/**
 * The places (in the operations given) where a document of the same `_id` stands already, when that is all that went
 * wrong. `undefined`: something else did, a lost connection for instance, which has no errors of single operations at
 * all.
 */
export function duplicateIdsOf(error: unknown): readonly number[] | undefined {
  if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError() !== undefined) return undefined;
  const errors = writeErrorsOf(error);
  const only = errors.length > 0 && errors.every(isTakenId);
  return only ? errors.map(({ index }) => index) : undefined;
}

function writeErrorsOf({ writeErrors }: MongoBulkWriteError): readonly WriteError[] {
  return [writeErrors].flat();
}

function isTakenId({ code, errmsg }: WriteError): boolean {
  return code === DUPLICATE_KEY && isIdIndex(errmsg ?? '');
}

/** The message names the index before the value, which may be anything. */
function isIdIndex(message: string): boolean {
  return /\bindex:? '?([^ ']+)/i.exec(message)?.[1] === '_id_';
}
