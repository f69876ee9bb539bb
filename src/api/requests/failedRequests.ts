/**
 * Requests of clients that were refused or failed, for the client to read (docs/api/errors.md#failed-requests). They
 * are records: one for each client and day, with the latest rows of that day, so that no caller fills the disk. Rows
 * are stored behind their answers, some at a time, and are lost with a process that is killed before.
 */
import type { Logger } from 'pino';
import { pauseForBeats } from '../../lib/async/beats.js';
import { randomBytes } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { timeKey } from '../../projections/timeKey.js';
import type { Failure } from '../pipeline/server.js';

/** Days for which rows are retained, that of the request included. */
export const RETAINED_DAYS = 7;
/** The most rows of a client and day: the latest are retained. */
export const MOST_OF_DAY = 500;
const DAY_MS = 24 * 3_600_000;
/** How long rows wait for others to be stored with. */
const BATCH_MS = 1_000;
/** Attempts at a record that other processes write to, too. */
const TRIES = 8;
/** Digits of a row's id behind its time. */
export const ID_DIGITS = 8;

export interface FailedRequest extends Omit<Failure, 'client'> {
  /** Its time (`timeKey`), a dot, and random digits: ids sort by time. */
  readonly id: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly at: string;
}

export interface FailedRequests {
  note(failure: Failure): void;
  /** All rows of a client, the latest first; those of this process at once. @throws UnavailableError */
  of(client: string): Promise<readonly FailedRequest[]>;
  /** Stores what waits. */
  close(): Promise<void>;
}

interface Rows {
  readonly client: string;
  readonly day: string;
  readonly rows: FailedRequest[];
}

/** @param records that expire by the service's clock @param now ISO 8601, UTC, milliseconds */
export function openFailedRequests(records: Records, logger: Logger, now: () => string): FailedRequests {
  const waiting = new Map<string, Rows>();
  const closing = new AbortController();
  let storing: Promise<void> = Promise.resolve();
  let isScheduled = false;

  function add({ client, day, rows }: Rows): void {
    const key = keyOf(client, day);
    const before = waiting.get(key);
    if (before === undefined) return void waiting.set(key, { client, day, rows });
    before.rows.push(...rows);
    // Cut now and then only: a caller may fail thousands of times in a second.
    if (before.rows.length > 2 * MOST_OF_DAY) before.rows.splice(0, Infinity, ...latest(before.rows));
  }

  async function storeOne({ client, day, rows }: Rows): Promise<void> {
    const key = keyOf(client, day);
    const expiresAt = Date.parse(day) + RETAINED_DAYS * DAY_MS;
    for (let tries = TRIES; tries > 0; tries--) {
      const before = await records.get<readonly FailedRequest[]>(key);
      const value = latest([...(before?.value ?? []), ...rows]);
      if ((await records.put(key, value, { expected: before?.version ?? 0, expiresAt })) !== undefined) return;
    }
    throw new UnavailableError(`other processes change the record ${key} all the time`);
  }

  async function storeAll(): Promise<void> {
    const all = [...waiting.values()];
    waiting.clear();
    for (const one of all)
      try {
        await storeOne(one);
      } catch (err) {
        if (!(err instanceof UnavailableError)) throw err;
        logger.warn({ err }, 'failed requests of a client could not be stored, and wait');
        add(one);
      }
  }

  const store = (): Promise<void> => (storing = storing.then(storeAll, storeAll));

  function schedule(): void {
    if (isScheduled) return;
    isScheduled = true;
    void pauseForBeats(BATCH_MS, closing.signal).then(() => {
      isScheduled = false;
      if (closing.signal.aborted) return;
      store().then(
        () => {
          if (waiting.size > 0) schedule();
        },
        (err: unknown) => logger.error({ err }, 'failed requests of clients are not stored'),
      );
    });
  }

  return {
    note({ client, ...failure }) {
      const at = now();
      const id = `${timeKey(at)}.${randomBytes(ID_DIGITS / 2).toString('hex')}`;
      add({ client, day: at.slice(0, 10), rows: [{ id, at, ...failure }] });
      schedule();
    },
    async of(client) {
      await store();
      const found = await records.list<readonly FailedRequest[]>(keyOf(client, ''));
      return found.flatMap(({ value }) => value).sort((one, other) => (one.id > other.id ? -1 : 1));
    },
    async close() {
      closing.abort();
      await store();
    },
  };
}

/** The name in the key is encoded, so that no client's keys begin with another's. */
const keyOf = (client: string, day: string): string =>
  `failed-requests/${Buffer.from(client).toString('base64url')}/${day}`;

/** @param rows in any order; a row may be there twice, where it was not known whether it had been stored */
const latest = (rows: readonly FailedRequest[]): readonly FailedRequest[] =>
  [...new Map(rows.map((row) => [row.id, row])).values()]
    .sort((one, other) => (one.id < other.id ? -1 : 1))
    .slice(-MOST_OF_DAY);
