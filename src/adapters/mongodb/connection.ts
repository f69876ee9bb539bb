/** Every call has a deadline. A client that no longer finds a server is replaced. */
import type { Collection, Db, DbOptions, Document, MongoClient } from 'mongodb';
import type { Logger } from 'pino';
import { type InFlight, inFlight } from '../../lib/inFlight.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { within } from '../../lib/async/within.js';
import type { MongoStore } from './address.js';
import { LateError, failureOf, foundNoServer, wasClosed } from './failures.js';

/**
 * Deadline in ms of reads, and of writes of single documents. The driver detects a silent server after 3 s; this covers
 * the rest.
 */
export const CALL_MS = 5_000;
/** Deadline in ms of a command of up to 1,000 documents, or of a long answer. */
export const BULK_MS = 20_000;
export const INDEX_MS = 1_800_000;

const MISSES = 2;
/** ms that a new client has to find its server. */
const PATIENCE_MS = 2_000;
/** Longest wait in ms for running calls before a client is closed. */
const CLOSE_MS = 5_000;
/** Milliseconds after which an abandoned call fails: a call whose connection the driver destroyed may never end. */
const ABANDONED_MS = 2_000;

/** Acknowledged writes are in the journals of a majority; reads use only the primary, which has them. */
const CARE: DbOptions = {
  readPreference: 'primary',
  writeConcern: { w: 'majority', journal: true, wtimeoutMS: 10_000 },
};

export interface Database {
  readonly db: Db;
  collection<D extends Document>(name: string): Collection<D>;
}

export interface Connection {
  readonly store: MongoStore;
  /** @throws UnavailableError when the call fails or `deadlineMs` passes */
  read<T>(work: (database: Database) => Promise<T>, deadlineMs?: number): Promise<T>;
  /**
   * @throws UnavailableError, whose outcome is unknown unless nothing was sent; other errors when the server refuses
   * the change
   */
  write<T>(work: (database: Database) => Promise<T>, deadlineMs?: number): Promise<T>;
  /**
   * Has the server checked before the next call, and again before the first call after it was lost: it may come back
   * without its data. Where the check fails, no call is answered.
   */
  guard(check: (database: Database) => Promise<void>): void;
  /** Has the server checked before the next call. */
  checkAgain(): void;
  /** Refuses new calls, lets running ones finish (at most 5 s), and closes. */
  close(): Promise<void>;
}

interface ConnectionOptions {
  readonly store: MongoStore;
  readonly newClient: () => MongoClient;
  readonly database: string;
  readonly logger?: Logger | undefined;
}

interface Call {
  readonly running: Promise<unknown>;
  fail(error: Error): void;
}

interface Session extends Database {
  readonly client: MongoClient;
  readonly madeAt: number;
  readonly underWay: InFlight<Call>;
  /** How often a server was lost or found, or is to be checked for another reason. */
  changes: number;
  /** As `changes`, at the last check that found nothing. */
  checked: number;
  checking: Promise<void> | undefined;
}

export function openConnection({ store, newClient, database, logger }: ConnectionOptions): Connection {
  const ending = new Set<Promise<void>>();
  let misses = 0;
  let closing: Promise<void> | undefined;
  let check: Parameters<Connection['guard']>[0] | undefined;
  let current = newSession();

  function newSession(): Session {
    const client = newClient();
    const db = client.db(database, CARE);
    const collections = new Map<string, Collection>();
    const underWay = inFlight<Call>();
    client.on('connectionPoolCleared', ({ interruptInUseConnections }) => {
      if (interruptInUseConnections === true) giveUp(underWay);
    });
    const session: Session = {
      client,
      db,
      madeAt: performance.now(),
      underWay,
      changes: 0,
      checked: -1,
      checking: undefined,
      collection<D extends Document>(name: string) {
        let collection = collections.get(name);
        if (collection === undefined) {
          collection = db.collection(name);
          collections.set(name, collection);
        }
        // A collection has any document: the caller knows which.
        return collection as unknown as Collection<D>;
      },
    };
    client.on('serverDescriptionChanged', ({ previousDescription, newDescription }) => {
      if (previousDescription.type !== newDescription.type) session.changes += 1;
    });
    return session;
  }

  async function checkNow(session: Session): Promise<void> {
    const { changes } = session;
    try {
      await check?.(session);
      session.checked = changes;
    } finally {
      session.checking = undefined;
    }
  }

  async function checked(session: Session): Promise<void> {
    while (session.checked !== session.changes) await (session.checking ??= checkNow(session));
  }

  /** A call that waited for a server may be answered by one that came back without its data. */
  async function guarded<T>(session: Session, work: (database: Database) => Promise<T>, writes: boolean): Promise<T> {
    await checked(session);
    const { changes } = session;
    const answer = await work(session);
    if (session.changes !== changes)
      await checked(session).catch((error: unknown) => {
        throw new UnavailableError(`the ${store.name} was lost while it answered`, {
          outcomeUnknown: writes,
          cause: error,
        });
      });
    return answer;
  }

  async function call<T>(work: (database: Database) => Promise<T>, deadlineMs: number, writes: boolean): Promise<T> {
    if (closing !== undefined) throw new UnavailableError(`the ${store.name} is closed`);
    const session = current;
    let fail!: (error: Error) => void;
    const failed = new Promise<never>((_, reject) => {
      fail = reject;
    });
    const answering = check === undefined ? work(session) : guarded(session, work, writes);
    const running = within(Promise.race([answering, failed]), deadlineMs, () => {
      throw new LateError(deadlineMs);
    });
    const number = session.underWay.put({ running, fail });
    try {
      const answer = await running;
      misses = 0;
      return answer;
    } catch (error) {
      if (foundNoServer(error) || wasClosed(error) || error instanceof LateError) missed(session, error);
      throw failureOf(error, store.name, writes);
    } finally {
      session.underWay.take(number);
    }
  }

  /** The driver recovers by itself, but not always, and never when a client's first connection failed. */
  function missed(session: Session, error: unknown): void {
    misses += 1;
    if (
      session !== current ||
      closing !== undefined ||
      misses < MISSES ||
      performance.now() - session.madeAt < PATIENCE_MS
    )
      return;
    logger?.warn({ err: error }, `the ${store.name} is not found: connecting anew`);
    misses = 0;
    current = newSession();
    giveUp(session.underWay);
    const ended = end(session).finally(() => ending.delete(ended));
    ending.add(ended);
  }

  async function end({ client, underWay }: Session): Promise<void> {
    await orGiveUp(Promise.allSettled(underWay.values().map(({ running }) => running)));
    // Remaining calls wait for a silent server.
    await orGiveUp(client.close(underWay.size() > 0));
  }

  return {
    store,
    read: (work, deadlineMs = CALL_MS) => call(work, deadlineMs, false),
    write: (work, deadlineMs = CALL_MS) => call(work, deadlineMs, true),
    guard(required) {
      check = required;
    },
    checkAgain() {
      current.changes += 1;
    },
    close() {
      closing ??= Promise.all([end(current), ...ending]).then(() => undefined);
      return closing;
    },
  };
}

/** Fails running calls after `ABANDONED_MS`; a call that is answered by then succeeds. */
function giveUp(underWay: InFlight<Call>): void {
  const calls = underWay.values();
  if (calls.length === 0) return;
  setTimeout(() => {
    for (const call of calls) call.fail(new LateError(ABANDONED_MS));
  }, ABANDONED_MS).unref();
}

async function orGiveUp(running: Promise<unknown>): Promise<void> {
  await within(running, CLOSE_MS, () => undefined).catch(() => undefined);
}
