/** The log that a store belongs to. */
import { setTimeout as sleep } from 'node:timers/promises';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Connection } from './connection.js';
import { isDuplicateId } from './failures.js';
import { META } from './layout.js';

interface Binding {
  readonly _id: string;
  readonly logId: string;
}

const LOG = 'log';
/** Attempts, and ms between them, until a majority of the servers has the document that another process wrote. */
export const MAJORITY_ATTEMPTS = 20;
export const MAJORITY_PAUSE_MS = 50;

/**
 * Binds the store to `logId` where it has no log yet.
 * @param first called before that: whoever finds the log may rely on it, also where this process dies in between
 * @returns its log
 */
export async function boundTo(connection: Connection, logId: string, first: () => Promise<unknown>): Promise<string> {
  for (let attempt = 0; attempt < MAJORITY_ATTEMPTS; attempt++) {
    if (attempt > 0) await sleep(MAJORITY_PAUSE_MS);
    const present = await connection.read((database) =>
      database.collection<Binding>(META).findOne({ _id: LOG }, { readConcern: { level: 'majority' } }),
    );
    if (present !== null) return present.logId;
    await first();
    const bound = await connection
      .write((database) => database.collection<Binding>(META).insertOne({ _id: LOG, logId }))
      .catch((error: unknown) => {
        if (!isDuplicateId(error)) throw error;
      });
    if (bound !== undefined) return logId;
  }
  throw new UnavailableError(
    `another process binds the ${connection.store.name}, and its word does not reach a majority of the servers`,
  );
}

/** Whether the store has no log: nothing was stored yet, or the database was emptied. */
export async function isUnbound(connection: Connection): Promise<boolean> {
  return (await connection.read((database) => database.collection<Binding>(META).findOne({ _id: LOG }))) === null;
}
