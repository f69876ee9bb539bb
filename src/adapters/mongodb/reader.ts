/** A missing collection is empty. */
import type { Filter } from 'mongodb';
import { inParallel } from '../../lib/async/inParallel.js';
import type { Body, CollectionSpec, Query, ReadStore } from '../../ports/readStore.js';
import { documentOf, isMisindexed, layoutOf, type Layout, type MongoDocument } from './layout.js';
import { BULK_MS, CALL_MS, type Connection } from './connection.js';
import { batchedReads } from './batchedReads.js';
import { all, ANSWER, sortedFind } from './finds.js';
import { filterOf, sortOf } from './query.js';

export type Reader = Pick<ReadStore, 'get' | 'getMany' | 'find' | 'count' | 'misindexed'>;

const SIDE_BY_SIDE = 4;

export function createReader(connection: Connection): Reader {
  const lookUp = batchedReads(connection);

  /** In no order. */
  async function some<T>(
    { collection }: Layout,
    ids: readonly string[],
    of: (document: MongoDocument) => T,
  ): Promise<T[]> {
    const found: T[] = [];
    const parts = Array.from({ length: Math.ceil(ids.length / ANSWER) }, (_, part) =>
      ids.slice(part * ANSWER, (part + 1) * ANSWER),
    );
    await inParallel(parts, SIDE_BY_SIDE, async (part) => {
      const filter: Filter<MongoDocument> = { _id: { $in: part } };
      const options = { batchSize: part.length + 1 };
      const documents = await connection.read((database) =>
        all(database.collection<MongoDocument>(collection).find(filter, options), of),
      );
      for (const document of documents) found.push(document);
    });
    return found;
  }

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
