/** The read store on MongoDB. */
import type { Logger } from 'pino';
import type { ReadStore } from '../../ports/readStore.js';
import { addressOf, engineErrorOf } from './address.js';
import { createCheckpoints } from './checkpoints.js';
import { dropCollection, ensureCollection, versionsOf } from './collections.js';
import { correctDocuments } from './corrections.js';
import { layoutOf } from './layout.js';
import { openLink } from './connection.js';
import { createPointers } from './pointers.js';
import { createReader } from './reader.js';
import { createRecords, ensureRecords } from './records.js';
import { writeBatches } from './writer.js';

/** Where MongoDB is. */
export interface MongoReadStoreOptions {
  /** `mongodb://` or `mongodb+srv://`; names the database (default `gift`). */
  readonly url: string;
  /** Hears when the server was lost for long. */
  readonly logger?: Logger | undefined;
}

/**
 * Opens the read store. Any number of processes may have it open. A lost connection, or a server that falls silent,
 * fails what was asked (within 5 s, or 20 s for bulk writes and long results) and is got over without anybody's doing.
 * A collection that was never made reads as empty; writing to it makes it, without secondary indexes.
 * @throws EngineError naming MONGODB_URL: no address, nobody answers there, the credentials are refused, the server is
 * too old.
 */
export async function openMongoReadStore({ url, logger }: MongoReadStoreOptions): Promise<ReadStore> {
  const { database, newClient } = addressOf(url);
  const link = openLink({ newClient, database, logger });
  try {
    await ensureRecords(link);
  } catch (error) {
    await link.close();
    throw engineErrorOf(error);
  }
  const reader = createReader(link);
  const pointers = createPointers(link);
  const checkpoints = createCheckpoints(link);
  return {
    engine: 'mongodb',
    records: createRecords(link),
    ensure: async (collection, { deferIndexes = false } = {}) =>
      ensureCollection(link, layoutOf(collection), deferIndexes),
    async drop(collection) {
      const layout = layoutOf(collection);
      await dropCollection(link, layout);
      checkpoints.forget(layout.name);
    },
    ...reader,
    async write(batches) {
      await writeBatches(link, batches);
      for (const { checkpoint } of batches)
        if (checkpoint !== undefined) checkpoints.advanced(checkpoint.projection, checkpoint.position);
    },
    correct: async (collection, corrections) => correctDocuments(link, collection, corrections),
    versions: async (name) => versionsOf(link, name),
    checkpoint: checkpoints.stored,
    reached: checkpoints.reached,
    ...pointers,
    async ping() {
      await link.read(({ db }) => db.command({ ping: 1 }));
    },
    async close() {
      checkpoints.close();
      await link.close();
    },
  };
}
