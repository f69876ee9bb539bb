import {
  BSON,
  MongoBulkWriteError,
  MongoError,
  MongoInvalidArgumentError,
  MongoServerError,
  MongoServerSelectionError,
  MongoTopologyClosedError,
  type WriteError,
} from 'mongodb';
import { UnavailableError } from '../../ports/unavailable.js';

const DUPLICATE_KEY = 11_000;
/** Codes of a wrong command, which would fail again. All others are faults of the engine. */
const REFUSALS = new Set([2, 4, 9, 14, 40, 52, 66, 67, 73, 85, 86, DUPLICATE_KEY, 10_334, 17_280, 17_419]);
const NAMESPACE_NOT_FOUND = 26;
const NAMESPACE_EXISTS = 48;

/** The driver may wait for ever on a silent connection, so calls have their own deadline. */
export class LateError extends Error {
  override readonly name = 'LateError';
  constructor(ms: number) {
    super(`no answer within ${ms} ms`);
  }
}

/** Whether the driver found no server. The error of a bulk write carries only the reason. */
export function foundNoServer(error: unknown): boolean {
  return error instanceof MongoServerSelectionError || (error instanceof MongoBulkWriteError && 'reason' in error);
}

/**
 * Whether the client was closed. It also closes by itself, when its first connection finds no server. The error of a
 * bulk write carries only the message.
 */
export function wasClosed(error: unknown): boolean {
  return (
    error instanceof MongoTopologyClosedError ||
    (error instanceof MongoBulkWriteError && error.message === new MongoTopologyClosedError().message)
  );
}

function isNotSent(error: unknown): boolean {
  return foundNoServer(error) || (error instanceof MongoError && error.name === 'MongoWaitQueueTimeoutError');
}

/** An error of a socket that the server has just closed: `EPIPE`, `ECONNRESET`, `ERR_STREAM_…`. */
function isConnectionError(error: unknown): error is NodeJS.ErrnoException {
  return (
    error instanceof Error &&
    'code' in error &&
    typeof error.code === 'string' &&
    /^(E(?!RR_)[A-Z]+|ERR_(STREAM|SOCKET)_[A-Z_]+)$/.test(error.code)
  );
}

/**
 * The error of a failed call. Its class does not show whether the server answered, so a write's outcome is unknown
 * unless nothing was sent.
 */
export function failureOf(error: unknown, store: string, writes: boolean): unknown {
  if (
    error instanceof UnavailableError ||
    error instanceof BSON.BSONError ||
    error instanceof MongoInvalidArgumentError
  )
    return error;
  if (!(error instanceof MongoError) && !(error instanceof LateError) && !isConnectionError(error)) return error;
  if (isRefusal(error)) return error;
  return new UnavailableError(`the ${store} did not answer: ${error.message}`, {
    outcomeUnknown: writes && !isNotSent(error),
    cause: error,
  });
}

/**
 * Whether the server refused the change. In a bulk write a taken `_id` belongs to a newer document: only other errors
 * count.
 */
function isRefusal(error: Error): boolean {
  if (error instanceof MongoBulkWriteError)
    return (
      writeErrorsOf(error).some((one) => REFUSALS.has(one.code) && !isTakenId(one)) &&
      error.result.getWriteConcernError() === undefined
    );
  return error instanceof MongoServerError && typeof error.code === 'number' && REFUSALS.has(error.code);
}

export function isDuplicateId(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === DUPLICATE_KEY && isIdIndex(error.errmsg ?? error.message);
}

export function isMissing(error: unknown): boolean {
  return error instanceof MongoServerError && (error.code === NAMESPACE_NOT_FOUND || error.message === 'ns not found');
}

export function isPresent(error: unknown): boolean {
  return error instanceof MongoServerError && error.code === NAMESPACE_EXISTS;
}

/** Indexes of the operations whose `_id` is taken; `undefined` where anything else failed, such as the connection. */
export function duplicateIdsOf(error: unknown): readonly number[] | undefined {
  return onlyOf(error, isTakenId);
}

/** Indexes of the operations whose value is taken in any unique index; otherwise as `duplicateIdsOf`. */
export function duplicatesOf(error: unknown): readonly number[] | undefined {
  return onlyOf(error, ({ code }) => code === DUPLICATE_KEY);
}

function onlyOf(error: unknown, expected: (one: WriteError) => boolean): readonly number[] | undefined {
  if (!(error instanceof MongoBulkWriteError) || error.result.getWriteConcernError() !== undefined) return undefined;
  const errors = writeErrorsOf(error);
  const only = errors.length > 0 && errors.every(expected);
  return only ? errors.map(({ index }) => index) : undefined;
}

function writeErrorsOf({ writeErrors }: MongoBulkWriteError): readonly WriteError[] {
  return [writeErrors].flat();
}

function isTakenId({ code, errmsg }: WriteError): boolean {
  return code === DUPLICATE_KEY && isIdIndex(errmsg ?? '');
}

/** Whether a duplicate is one of `_id`. The message names the index before the value, which may be any text. */
function isIdIndex(message: string): boolean {
  return /\bindex:? '?([^ ']+)/i.exec(message)?.[1] === '_id_';
}
