import type { Logger } from 'pino';
import type { ReadStore, StoredText } from '../../ports/readStore.js';
import { addressOf, engineErrorOf, READ_STORE } from './address.js';
import { boundTo } from './binding.js';
import { createCheckpoints } from './checkpoints.js';
import { dropCollection, ensureCollection, versionsOf } from './collections.js';
import { correctDocuments } from './corrections.js';
import { layoutOf } from './layout.js';
import { type Connection, openConnection } from './connection.js';
import { refuseOtherFormat } from './format.js';
import { createPointers } from './pointers.js';
import { createReader } from './reader.js';
import { createRecords, ensureRecords } from './records.js';
import { writeBatches } from './writer.js';
import { pagesById } from './finds.js';

interface MongoReadStoreOptions {
  /** A `mongodb://` or `mongodb+srv://` address with the database (default `gift`). */
  readonly url: string;
  readonly logger?: Logger | undefined;
}

/**
 * Opens the read store, which any number of processes may share. A lost or silent server fails calls (within 5 s, or 20
 * s for bulk writes and long results); the store recovers by itself. A missing collection reads as empty, and the first
 * write creates it without secondary indexes.
 * @throws EngineError naming MONGODB_URL: an invalid address, no answer, refused credentials, a server too old, data of
 * another format
 */
export async function openMongoReadStore({ url, logger }: MongoReadStoreOptions): Promise<ReadStore> {
  const { database, newClient } = addressOf(url, READ_STORE);
  const connection = openConnection({ store: READ_STORE, newClient, database, logger });
  try {
    await refuseOtherFormat(connection);
    await ensureRecords(connection);
  } catch (error) {
    await connection.close();
    throw engineErrorOf(error, READ_STORE);
  }
  const reader = createReader(connection);
  const pointers = createPointers(connection);
  const checkpoints = createCheckpoints(connection);
  const ping = async (): Promise<void> => {
    await connection.read(({ db }) => db.command({ ping: 1 }));
  };
  return {
    engine: 'mongodb',
    records: createRecords(connection),
    ensure: async (collection, { deferIndexes = false } = {}) =>
      ensureCollection(connection, layoutOf(collection), deferIndexes),
    async drop(collection) {
      const layout = layoutOf(collection);
      await dropCollection(connection, layout);
      checkpoints.forget(layout.name);
    },
    ...reader,
    async write(batches) {
      await writeBatches(connection, batches);
      for (const { checkpoint } of batches)
        if (checkpoint !== undefined) checkpoints.advanced(checkpoint.projection, checkpoint.position);
    },
    correct: async (collection, corrections) => correctDocuments(connection, collection, corrections),
    versions: async (name) => versionsOf(connection, name),
    checkpoint: checkpoints.stored,
    reached: checkpoints.reached,
    ...pointers,
    // The server overwrites freed blocks by its own rules, so there is nothing to scrub.
    scrub: ping,
    texts: () => storedTexts(connection),
    boundTo: async (logId) => boundTo(connection, logId),
    ping,
    async close() {
      checkpoints.close();
      await connection.close();
    },
  };
}

interface Stored {
  readonly _id: string;
  readonly [field: string]: unknown;
}

/** Yields the text of every document in every collection of the database, whatever its purpose. */
export async function* storedTexts(connection: Connection): AsyncGenerator<readonly StoredText[], void> {
  const collections = await connection.read(({ db }) => db.listCollections({}, { nameOnly: true }).toArray());
  for (const { name } of collections)
    for await (const page of pagesById<Stored>(connection, name))
      yield page.map(({ _id, ...rest }) => ({
        place: `${name} ${_id}`,
        text: [_id, ...Object.values(rest)]
          .map((value) => (typeof value === 'string' ? value : JSON.stringify(value)))
          .join('\n'),
      }));
}
