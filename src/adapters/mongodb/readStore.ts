import type { Logger } from 'pino';
import type { ReadStore, StoredText, CollectionSpec, Correction } from '../../ports/readStore.js';
import { addressOf, engineErrorOf, READ_STORE } from './address.js';
import { boundTo } from './binding.js';
import { dropCollection, ensureCollection, isLost, versionsOf } from './collections.js';
import { layoutOf, META, valuesOf, type Layout, type MongoDocument, CHECKPOINTS } from './layout.js';
import { type Connection, openConnection } from './connection.js';
import { markFormat, refuseOtherFormat } from './format.js';
import { createReader } from './reader.js';
import { createRecords, ensureRecords } from './records.js';
import { type SeenCheckpoints, writeBatches } from './writer.js';
import { pagesById } from './finds.js';
import { isDuplicateId } from './failures.js';
import { refuseTooMany } from '../readStoreRules.js';
import type { Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { checkpointWaiters, type CheckpointWaiters } from '../checkpointWaiters.js';
import type { Positioned } from './guarded.js';

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
    async ensure(collection, { deferIndexes = false } = {}) {
      const { name, version } = collection;
      const layout = layoutOf(collection);
      const serves = (await pointers.active(name)) === version;
      if (await isLost(connection, layout, serves)) {
        logger?.warn(`${layout.name} was dropped from the read store: it is filled anew`);
        await pointers.deactivate(name, version);
        await dropCollection(connection, layout);
        checkpoints.forget(layout.name);
      }
      await ensureCollection(connection, layout, deferIndexes);
    },
    async drop(collection) {
      const layout = layoutOf(collection);
      await dropCollection(connection, layout);
      checkpoints.forget(layout.name);
    },
    ...reader,
    async write(batches) {
      await writeBatches(connection, batches, checkpoints);
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
    // A database that was emptied while the service runs is filled anew, and has lost these as well.
    boundTo: async (logId) =>
      boundTo(connection, logId, async () => {
        await markFormat(connection);
        await ensureRecords(connection);
      }),
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
async function* storedTexts(connection: Connection): AsyncGenerator<readonly StoredText[], void> {
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

type Pointers = Pick<ReadStore, 'active' | 'activate' | 'deactivate'>;

interface Pointer {
  readonly _id: string;
  readonly version: number;
}

function createPointers(connection: Connection): Pointers {
  async function active(name: string): Promise<number | undefined> {
    const pointer = await connection.read((database) =>
      database.collection<Pointer>(META).findOne({ _id: idOf(name) }),
    );
    return pointer?.version;
  }

  /** Sets the active version where the present one is among `before`. @param before `undefined`: any version */
  async function set(
    name: string,
    version: number,
    before: readonly number[] | undefined,
    upsert: boolean,
  ): Promise<boolean> {
    const filter = { _id: idOf(name), ...(before === undefined ? {} : { version: { $in: [...before] } }) };
    const { matchedCount, upsertedCount } = await connection.write((database) =>
      database.collection<Pointer>(META).updateOne(filter, { $set: { version } }, { upsert }),
    );
    return matchedCount + upsertedCount === 1;
  }

  return {
    active,
    async activate(name, version, { expected } = {}) {
      try {
        // Where another version is active, the upsert meets its id and fails.
        if (expected === undefined) return await set(name, version, undefined, true);
        return await set(name, version, expected === 0 ? [version] : [expected, version], expected === 0);
      } catch (error) {
        if (!isDuplicateId(error)) throw error;
        // Another version is active: only a call without `expected` replaces it.
        return expected === undefined ? set(name, version, undefined, false) : (await active(name)) === version;
      }
    },
    async deactivate(name, version) {
      await connection.write((database) => database.collection<Pointer>(META).deleteOne({ _id: idOf(name), version }));
      return (await active(name)) === undefined;
    },
  };
}

function idOf(name: string): string {
  return `active/${name}`;
}

async function correctDocuments(
  connection: Connection,
  collection: CollectionSpec,
  corrections: readonly Correction[],
): Promise<boolean[]> {
  refuseTooMany(collection, corrections, 'corrections');
  const layout = layoutOf(collection);
  const made: boolean[] = [];
  for (const correction of corrections) made.push(await correct(connection, layout, correction));
  return made;
}

async function correct(
  connection: Connection,
  layout: Layout,
  { id, expected, document }: Correction,
): Promise<boolean> {
  const filter = { _id: id, ...(expected === undefined ? {} : { p: expected }) };
  const next =
    document === undefined
      ? undefined
      : { p: document.position, b: JSON.stringify(document.body), ...valuesOf(layout.fields, document.body) };
  if (next === undefined && expected === undefined) {
    return (
      (await connection.read((database) =>
        database.collection<MongoDocument>(layout.collection).findOne({ _id: id }, { projection: { p: 1 } }),
      )) === null
    );
  }
  return connection.write(async (database) => {
    const documents = database.collection<MongoDocument>(layout.collection);
    if (next === undefined) return (await documents.deleteOne(filter)).deletedCount === 1;
    if (expected !== undefined) return (await documents.replaceOne(filter, next)).matchedCount === 1;
    try {
      await documents.insertOne({ _id: id, ...next });
      return true;
    } catch (error) {
      if (isDuplicateId(error)) return false;
      throw error;
    }
  });
}

interface Checkpoints
  extends Pick<CheckpointWaiters, 'advanced' | 'forget' | 'close'>, Pick<ReadStore, 'reached'>, SeenCheckpoints {
  stored(projection: string): Promise<Position | undefined>;
}

/** Milliseconds from an answer to the next query for checkpoints. */
const POLL_MS = 15;

export function createCheckpoints(connection: Pick<Connection, 'read'>): Checkpoints {
  const waiters = checkpointWaiters(poll);
  const seen = new Set<string>();
  let looking = false;
  let next = 0;
  let closed = false;

  async function read(projections: readonly string[]): Promise<Positioned[]> {
    // A checkpoint that a failover takes back would leave a projection ahead of lost documents.
    const found = await connection.read((database) =>
      database
        .collection<Positioned>(CHECKPOINTS)
        .find({ _id: { $in: projections } }, { readConcern: { level: 'majority' }, batchSize: projections.length + 1 })
        .toArray(),
    );
    for (const { _id, p } of found) advanced(_id, p);
    return found;
  }

  function advanced(projection: string, position: Position): void {
    seen.add(projection);
    waiters.advanced(projection, position);
  }

  function poll(): void {
    if (looking || performance.now() < next) return;
    looking = true;
    const requested = waiters.projections();
    void read(requested)
      .catch((error: unknown) => waiters.fail(requested, error))
      .finally(() => {
        looking = false;
        next = performance.now() + POLL_MS;
      });
  }

  async function stored(projection: string): Promise<Position | undefined> {
    const found = (await read([projection]))[0]?.p;
    // It stays seen: many parts of a process ask for it, and its writer must still notice that it is gone.
    if (found === undefined) waiters.forget(projection);
    return found;
  }

  return {
    stored,
    advanced,
    forget(projection) {
      seen.delete(projection);
      waiters.forget(projection);
    },
    isSeen: (projection) => seen.has(projection),
    async reached(projection, position, timeoutMs) {
      if (closed) throw new UnavailableError('the read store is closed');
      if (waiters.known(projection, position)) return true;
      if (timeoutMs <= 0) {
        const now = await stored(projection);
        return now !== undefined && now >= position;
      }
      if (waiters.projections().length === 0) next = 0;
      const reached = waiters.wait(projection, position, timeoutMs);
      poll();
      return reached;
    },
    close() {
      closed = true;
      waiters.close();
    },
  };
}
