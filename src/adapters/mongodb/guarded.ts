/** Writes that never replace something newer. */
import type { AnyBulkWriteOperation } from 'mongodb';
import { duplicateIdsOf } from './failures.js';
import { BULK_MS } from './connection.js';
import type { Link } from './connection.js';

/** What is stored under an id, at a position. */
export interface Positioned {
  readonly _id: string;
  readonly p: string;
}

/**
 * Writes each of `documents` (each id once) where there is none of that id, or one of a lower position. In the order of
 * ids: two such commands at once then can't wait for each other. Where one of the id stands already and is newer, the
 * server says that the id is taken. But so it does where another client wrote the id for the first time in the very
 * same moment, and that one may be older: these are written once more, over what is there now.
 */
export async function writeGuarded<D extends Positioned>(
  link: Link,
  collection: string,
  documents: readonly D[],
): Promise<void> {
  const sorted = documents.toSorted(byId);
  const present = await attempt(link, collection, sorted, true);
  if (present.length > 0) await attempt(link, collection, present, false);
}

/** @returns those whose id was there already, when not replaced. */
async function attempt<D extends Positioned>(
  link: Link,
  collection: string,
  documents: readonly D[],
  upsert: boolean,
): Promise<readonly D[]> {
  const operations = documents.map(({ _id, ...replacement }): AnyBulkWriteOperation<Positioned> => ({
    replaceOne: { filter: { _id, p: { $lt: replacement.p } }, replacement, upsert },
  }));
  return link.write(async (database) => {
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

function byId(a: Positioned, b: Positioned): number {
  return a._id < b._id ? -1 : a._id > b._id ? 1 : 0;
}
