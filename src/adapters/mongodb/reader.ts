/** Reads of documents; a missing collection reads as empty. */
import type { Body, CollectionSpec, Query, ReadStore } from '../../ports/readStore.js';
import { documentOf, isMisindexed, layoutOf, type Layout, type MongoDocument } from './layout.js';
import { BULK_MS, CALL_MS, type Connection } from './connection.js';
import { ANSWER, findAmong, sortedFind } from './finds.js';
import { filterOf, sortOf } from './query.js';
import { tickBatcher } from '../../lib/async/tickBatcher.js';
import { UnavailableError } from '../../ports/unavailable.js';

type Reader = Pick<ReadStore, 'get' | 'getMany' | 'find' | 'count' | 'misindexed'>;

export function createReader(connection: Connection): Reader {
  const lookUp = batchedReads(connection);

  const some = async <T>(
    { collection }: Layout,
    ids: readonly string[],
    of: (document: MongoDocument) => T,
  ): Promise<T[]> => findAmong<MongoDocument, T>(connection, collection, ids, (part) => ({ _id: { $in: part } }), of);

  return {
    async get<B extends Body>(collection: CollectionSpec, id: string) {
      const layout = layoutOf(collection);
      const document = await lookUp(layout.collection, id);
      return document === undefined ? undefined : documentOf<B>(document);
    },
    async getMany<B extends Body>(collection: CollectionSpec, ids: readonly string[]) {
      const documents = await some(layoutOf(collection), ids, documentOf<B>);
      const found = new Map(documents.map((document) => [document.id, document]));
      return ids.map((id) => found.get(id));
    },
    async find<B extends Body>(collection: CollectionSpec, query: Query) {
      const layout = layoutOf(collection);
      const filter = filterOf(layout, query);
      const { skip, limit } = query;
      if (filter === undefined) return [];
      const options = { sort: sortOf(query), skip, limit };
      return connection.read(
        (database) => sortedFind(database.collection<MongoDocument>(layout.collection), filter, options, documentOf<B>),
        limit !== undefined && limit <= ANSWER ? CALL_MS : BULK_MS,
      );
    },
    async count(collection, query) {
      const layout = layoutOf(collection);
      const filter = filterOf(layout, query);
      if (filter === undefined) return 0;
      return connection.read(
        (database) => database.collection<MongoDocument>(layout.collection).countDocuments(filter),
        BULK_MS,
      );
    },
    async misindexed(collection, ids) {
      const layout = layoutOf(collection);
      return (await some(layout, ids, (one) => (isMisindexed(layout, one) ? [one._id] : []))).flat();
    },
  };
}

/** Looks a document up, as it is stored after the call. @throws UnavailableError */
type LookUp = (collection: string, id: string) => Promise<MongoDocument | undefined>;

/** Requests in progress per collection; later look-ups wait, and share a request. */
const UNDER_WAY = 2;
/** Most look-ups of a request: its answer is parsed in one turn of the event loop. */
const MOST = 100;

/** Milliseconds after which a failed request was one to a silent server. */
const SILENT_MS = 1_000;

interface Requested {
  /** Look-ups are numbered in the order of their calls. */
  readonly number: number;
  readonly collection: string;
  readonly id: string;
  readonly resolve: (document: MongoDocument | undefined) => void;
  readonly reject: (error: unknown) => void;
}

interface Line {
  readonly waiting: Requested[];
  underWay: number;
}

/**
 * Look-ups of one turn, or made while others run, share a request. A look-up that waited for all the time of a request
 * to a silent server fails with it. Else the last of many would wait for the deadlines of all requests before its own.
 */
export function batchedReads(connection: Pick<Connection, 'read'>, silentMs = SILENT_MS): LookUp {
  const lines = new Map<string, Line>();
  let last = 0;

  async function send(collection: string, { waiting }: Line): Promise<void> {
    const requested = waiting.splice(0, MOST);
    const [since, lastBefore] = [performance.now(), last];
    try {
      const found = await read(collection, [...new Set(requested.map(({ id }) => id))]);
      for (const { id, resolve } of requested) resolve(found.get(id));
    } catch (error) {
      for (const { reject } of requested) reject(error);
      if (!(error instanceof UnavailableError) || performance.now() - since < silentMs) return;
      const later = waiting.findIndex(({ number }) => number > lastBefore);
      for (const { reject } of waiting.splice(0, later < 0 ? waiting.length : later)) reject(error);
    }
  }

  async function read(collection: string, ids: readonly string[]): Promise<ReadonlyMap<string, MongoDocument>> {
    const documents = await connection.read(async (database) => {
      const all = database.collection<MongoDocument>(collection);
      if (ids.length === 1) return [await all.findOne({ _id: ids[0] as string })];
      return all.find({ _id: { $in: [...ids] } }, { batchSize: ids.length + 1 }).toArray();
    });
    return new Map(documents.flatMap((document) => (document === null ? [] : [[document._id, document] as const])));
  }

  function advance(collection: string, line: Line): void {
    while (line.waiting.length > 0 && line.underWay < UNDER_WAY) {
      line.underWay += 1;
      void send(collection, line).then(() => {
        line.underWay -= 1;
        advance(collection, line);
      });
    }
    if (line.underWay === 0) lines.delete(collection);
  }

  const batch = tickBatcher<Requested>((requested) => {
    for (const one of requested) {
      const line = lines.get(one.collection) ?? { waiting: [], underWay: 0 };
      lines.set(one.collection, line);
      line.waiting.push(one);
    }
    for (const [collection, line] of lines) advance(collection, line);
    return undefined;
  });

  return (collection, id) =>
    new Promise((resolve, reject) => void batch.add({ number: ++last, collection, id, resolve, reject }));
}
