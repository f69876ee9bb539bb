import type { Collection, Document, Filter, FindCursor, FindOptions, Sort, WithId } from 'mongodb';
import { inParallel } from '../../lib/async/inParallel.js';
import { pages } from '../../lib/async/pages.js';
import { BULK_MS, type Connection } from './connection.js';

/** Documents of one answer: they are parsed in one turn of the event loop, in some 5 ms. */
export const ANSWER = 1_000;
/** Answers that one call waits for at a time. */
export const SIDE_BY_SIDE = 4;
/** A server cuts an answer short before the document that makes it 16 MB; no document has more than 8 MB. */
const SURELY_WHOLE_BYTES = 8_000_000;
/** The most that one UTF-16 unit of a text takes as UTF-8. */
const UNIT_BYTES = 3;

interface SortedFind extends Pick<FindOptions, 'readConcern'> {
  readonly sort: Sort;
  readonly skip?: number | undefined;
  readonly limit?: number | undefined;
}

/**
 * The first answer is requested without a cursor, and is nearly always whole. FerretDB keeps a PostgreSQL session for
 * the cursor of a sorted find, even where no document is left: each costs a process and 8 ms. A result that may go on
 * after the first answer is read again with a cursor, so that all of it is of one find.
 */
export async function sortedFind<D extends Document, T>(
  collection: Collection<D>,
  filter: Filter<D>,
  { skip = 0, limit, ...options }: SortedFind,
  of: (document: WithId<D>) => T,
): Promise<T[]> {
  // To the driver a limit of 0 means none.
  if (limit === 0) return [];
  const most = Math.min(limit ?? ANSWER, ANSWER);
  const first = { ...options, skip, limit: most, batchSize: most, singleBatch: true };
  const found = await collection.find(filter, first).toArray();
  if (found.length === limit || (found.length < most && isWhole(found))) return found.map(of);
  const rest = { ...options, skip, batchSize: ANSWER, ...(limit === undefined ? {} : { limit }) };
  return all(collection.find(filter, rest), of);
}

/** Whether an answer was surely not cut short. Documents are texts; their other values are small. */
function isWhole(documents: readonly Document[]): boolean {
  let units = 0;
  for (const document of documents)
    for (const value of Object.values(document)) if (typeof value === 'string') units += value.length;
  return units * UNIT_BYTES < SURELY_WHOLE_BYTES;
}

/** Reads all documents of a cursor, each answer in a turn of its own. */
async function all<D, T>(cursor: FindCursor<D>, of: (document: D) => T): Promise<T[]> {
  const found: T[] = [];
  try {
    while (await cursor.hasNext()) for (const document of cursor.readBufferedDocuments()) found.push(of(document));
    return found;
  } finally {
    // An exhausted cursor holds nothing; a failed one may wait for a silent server.
    cursor.close().catch(() => undefined);
  }
}

/**
 * Finds the documents of many keys, in no order.
 * @param filterOf makes the filter for a part of the keys, at most as many as an answer has
 */
export async function findAmong<D extends Document, T>(
  connection: Connection,
  collection: string,
  keys: readonly string[],
  filterOf: (keys: readonly string[]) => Filter<D>,
  of: (document: WithId<D>) => T,
  options: Pick<FindOptions, 'readConcern'> = {},
): Promise<T[]> {
  const found: T[] = [];
  await inParallel(inParts(keys), SIDE_BY_SIDE, async (part) => {
    const whole = { ...options, batchSize: part.length + 1 };
    const documents = await connection.read((database) =>
      all(database.collection<D>(collection).find(filterOf(part), whole), of),
    );
    for (const document of documents) found.push(document);
  });
  return found;
}

export function* inParts(keys: readonly string[]): Iterable<string[]> {
  for (let at = 0; at < keys.length; at += ANSWER) yield keys.slice(at, at + ANSWER);
}

/**
 * Reads a whole collection by id, an answer at a time. While it changes, a document that exists all along is delivered
 * once.
 */
export function pagesById<D extends { readonly _id: string }>(
  connection: Connection,
  collection: string,
): AsyncGenerator<readonly WithId<D>[], void> {
  return pages(ANSWER, async (last: WithId<D> | undefined) => {
    const filter = (last === undefined ? {} : { _id: { $gt: last._id } }) as Filter<D>;
    return connection.read(
      (database) =>
        sortedFind(database.collection<D>(collection), filter, { sort: { _id: 1 }, limit: ANSWER }, (one) => one),
      BULK_MS,
    );
  });
}
