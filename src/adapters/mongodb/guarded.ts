import type { AnyBulkWriteOperation } from 'mongodb';
import { byKey } from './commands.js';
import { duplicateIdsOf } from './failures.js';
import { BULK_MS, type Connection } from './connection.js';

export interface Positioned {
  readonly _id: string;
  readonly p: string;
}

/**
 * Writes each of `documents` (each id once) where its id is free, or its stored position lower. Ordered ids keep two
 * such commands from waiting for each other. A taken id means a newer document, or one that another client inserted at
 * the same moment. The latter may be older, so these are written again, without inserting.
 */
export async function writeGuarded<D extends Positioned>(
  connection: Connection,
  collection: string,
  documents: readonly D[],
): Promise<void> {
  const sorted = documents.toSorted(byKey(({ _id }) => _id));
  const present = await attempt(connection, collection, sorted, true);
  if (present.length > 0) await attempt(connection, collection, present, false);
}

/** @returns the documents whose id was taken */
async function attempt<D extends Positioned>(
  connection: Connection,
  collection: string,
  documents: readonly D[],
  upsert: boolean,
): Promise<readonly D[]> {
  const operations = documents.map(({ _id, ...replacement }): AnyBulkWriteOperation<Positioned> => ({
    replaceOne: { filter: { _id, p: { $lt: replacement.p } }, replacement, upsert },
  }));
  return connection.write(async (database) => {
    try {
      await database.collection<Positioned>(collection).bulkWrite(operations, { ordered: false });
      return [];
    } catch (error) {
      const present = duplicateIdsOf(error);
      if (present === undefined) throw error;
      return present.map((index) => documents[index] as D);
    }
  }, BULK_MS);
}
