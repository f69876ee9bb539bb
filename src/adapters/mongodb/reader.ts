/** Reads of documents; a missing collection reads as empty. */
import type { Body, CollectionSpec, Query, ReadStore } from '../../ports/readStore.js';
import { documentOf, isMisindexed, layoutOf, type Layout, type MongoDocument } from './layout.js';
import { BULK_MS, CALL_MS, type Connection } from './connection.js';
import { batchedReads } from './batchedReads.js';
import { ANSWER, findAmong, sortedFind } from './finds.js';
import { filterOf, sortOf } from './query.js';

export type Reader = Pick<ReadStore, 'get' | 'getMany' | 'find' | 'count' | 'misindexed'>;

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
