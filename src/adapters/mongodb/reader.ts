/** A missing collection is empty. */
import type { Filter } from 'mongodb';
import { inParallel } from '../../lib/async/inParallel.js';
import type { Body, CollectionSpec, Query, ReadStore, StoredDocument } from '../../ports/readStore.js';
import { documentOf, layoutOf, type Layout, type MongoDocument } from './layout.js';
import { BULK_MS, CALL_MS, type Connection } from './connection.js';
import { batchedReads } from './batchedReads.js';
import { all, ANSWER, sortedFind } from './finds.js';
import { filterOf, sortOf } from './query.js';

export type Reader = Pick<ReadStore, 'get' | 'getMany' | 'find' | 'count'>;

const SIDE_BY_SIDE = 4;

export function createReader(connection: Connection): Reader {
  const lookUp = batchedReads(connection);

  async function some<B extends Body>(
    { collection }: Layout,
    ids: readonly string[],
    into: Map<string, StoredDocument<B>>,
  ): Promise<void> {
    const found = await connection.read((database) => {
      const filter: Filter<MongoDocument> = { _id: { $in: ids } };
      const options = { batchSize: ids.length + 1 };
      return all(database.collection<MongoDocument>(collection).find(filter, options), documentOf<B>);
    });
    for (const document of found) into.set(document.id, document);
  }

  return {
    async get<B extends Body>(collection: CollectionSpec, id: string) {
      const layout = layoutOf(collection);
      const document = await lookUp(layout.collection, id);
      return document === undefined ? undefined : documentOf<B>(document);
    },
    async getMany<B extends Body>(collection: CollectionSpec, ids: readonly string[]) {
      const layout = layoutOf(collection);
      const found = new Map<string, StoredDocument<B>>();
      const parts = Array.from({ length: Math.ceil(ids.length / ANSWER) }, (_, part) =>
        ids.slice(part * ANSWER, (part + 1) * ANSWER),
      );
      await inParallel(parts, SIDE_BY_SIDE, (part) => some(layout, part, found));
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
  };
}
