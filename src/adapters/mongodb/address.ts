/** Stores on a MongoDB: the client for a store's address, and messages about faults of that setting. */
import {
  MongoClient,
  MongoCompatibilityError,
  MongoServerError,
  MongoServerSelectionError,
  type MongoClientOptions,
} from 'mongodb';
import { UnavailableError } from '../../ports/unavailable.js';
import { AUTHORITY_IN_ADDRESS, certificateFault, EngineError, NoAnswerError } from '../../lib/engineError.js';

export interface MongoStore {
  /** The store's name in error messages. */
  readonly name: string;
  readonly setting: string;
  /** Database to use where the address names none. */
  readonly defaultDatabase: string;
}

export const READ_STORE: MongoStore = { name: 'read store', setting: 'MONGODB_URL', defaultDatabase: 'gift' };
export const KEY_STORE: MongoStore = { name: 'key store', setting: 'KEYS_URL', defaultDatabase: 'gift_keys' };

const AUTHENTICATION_FAILED = 18;
const UNAUTHORIZED = 13;
/**
 * Codes of a server that stops, or is not the primary any more or yet: a failover, which a start waits for
 * (https://github.com/mongodb/specifications, Server Discovery and Monitoring, "State Change Errors").
 */
const STATE_CHANGES = new Set<unknown>([91, 189, 10_107, 11_600, 11_602, 13_435, 13_436]);

/** Detects a silent server within 3 s. `timeoutMS` would not end calls that wait for a server. */
const OPTIONS: MongoClientOptions = {
  appName: 'gift',
  heartbeatFrequencyMS: 1_000,
  connectTimeoutMS: 2_000,
  serverSelectionTimeoutMS: 3_000,
  waitQueueTimeoutMS: 3_000,
  maxPoolSize: 32,
  // A write that the driver repeats, and finds no server for, would look as if it had never been sent.
  retryWrites: false,
};

interface Address {
  readonly database: string;
  readonly newClient: () => MongoClient;
}

/** Reads a store's address. @throws EngineError */
export function addressOf(url: string, { setting, defaultDatabase }: MongoStore): Address {
  const newClient = (): MongoClient => new MongoClient(url, OPTIONS);
  let database;
  try {
    newClient();
    const path = /^[^:]+:\/\/[^/?]*(?:\/([^?]*))?/.exec(url)?.[1];
    database = path === undefined || path === '' ? defaultDatabase : decodeURIComponent(path);
  } catch (error) {
    // The driver's messages repeat parts of the address, also of a badly encoded password.
    const detail = url.includes('@')
      ? 'check its parts; signs in user and password are to be percent-encoded'
      : (error as Error).message;
    throw new EngineError(setting, `it is not an address of a MongoDB: ${detail}`);
  }
  if (!/^[^/\\. "$*<>:|?\0]{1,63}$/.test(database))
    throw new EngineError(setting, `${JSON.stringify(database)} can't be the name of a database`);
  return { database, newClient };
}

/** The error for a server that can't be used at the start. */
export function engineErrorOf(error: unknown, { setting }: MongoStore): unknown {
  const cause = error instanceof UnavailableError ? error.cause : error;
  if (cause instanceof MongoServerSelectionError) return selectionFault(cause, setting);
  if (!(cause instanceof MongoServerError))
    return error instanceof UnavailableError ? new NoAnswerError(setting, error.message, error) : error;
  if (cause.code === AUTHENTICATION_FAILED)
    return new EngineError(setting, `the credentials are refused: ${cause.message}`, cause);
  if (cause.code === UNAUTHORIZED)
    return new EngineError(setting, `its user may not read and write the database: ${cause.message}`, cause);
  if (STATE_CHANGES.has(cause.code)) return new NoAnswerError(setting, cause.message, error);
  return new EngineError(setting, cause.message, cause);
}

function selectionFault(error: MongoServerSelectionError, setting: string): EngineError {
  const { servers } = error.reason as { readonly servers?: ReadonlyMap<string, { readonly error?: Error | null }> };
  const all = [...(servers ?? [])];
  const faults = all.map(([, server]) => server.error).filter((fault) => fault instanceof Error);
  const tooOld = faults.find((fault) => fault instanceof MongoCompatibilityError);
  if (tooOld !== undefined)
    return new EngineError(
      setting,
      `the server's version does not fit, MongoDB 7.0 or later does: ${tooOld.message}`,
      error,
    );
  for (const fault of [error, ...faults]) {
    const unverified = certificateFault(fault, setting, AUTHORITY_IN_ADDRESS);
    if (unverified !== undefined) return unverified;
  }
  return new NoAnswerError(
    setting,
    `no MongoDB answers at ${all.map(([host]) => host).join(', ')}: ${error.message}`,
    error,
  );
}
