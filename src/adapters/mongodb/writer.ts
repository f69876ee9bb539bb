import type { Position } from '../../ports/eventStore.js';
import { MAX_BATCH_BYTES, type StoredDocument, type WriteBatch } from '../../ports/readStore.js';
import { refuseTooMany } from '../readStoreRules.js';
import type { AnyBulkWriteOperation } from 'mongodb';
import { UnavailableError } from '../../ports/unavailable.js';
import { isUnbound } from './binding.js';
import { dropCollection } from './collections.js';
import { byKey, inCommands } from './commands.js';
import { type Positioned, writeGuarded } from './guarded.js';
import { CHECKPOINTS, layoutOf, valuesOf, type Layout, type MongoDocument } from './layout.js';
import { BULK_MS, type Connection } from './connection.js';

/** Checkpoints that this process has seen in the store. */
export interface SeenCheckpoints {
  isSeen(projection: string): boolean;
  forget(projection: string): void;
}

/**
 * Writes batches: documents first, then the checkpoints.
 * @throws Error when a batch exceeds the port's limits; UnavailableError, also when the store was emptied; errors of the
 * connection
 */
export async function writeBatches(
  connection: Connection,
  batches: readonly WriteBatch[],
  seen: SeenCheckpoints,
): Promise<void> {
  const perCollection = new Map<string, WriteBatch[]>();
  const checkpoints = new Map<string, Position>();
  for (const batch of batches) {
    const { name } = layoutOf(batch.collection);
    refuseTooMany(batch.collection, batch.documents, 'a batch');
    if (batch.documents.length > 0) perCollection.set(name, [...(perCollection.get(name) ?? []), batch]);
    if (batch.checkpoint === undefined) continue;
    const { projection, position } = batch.checkpoint;
    if (position > (checkpoints.get(projection) ?? '')) checkpoints.set(projection, position);
  }
  const written = await Promise.allSettled([...perCollection.values()].map((own) => writeCollection(connection, own)));
  for (const result of written) if (result.status === 'rejected') throw result.reason;
  const rows = Array.from(checkpoints, ([_id, p]) => ({ _id, p }));
  const first = rows.filter(({ _id }) => !seen.isSeen(_id));
  if (first.length > 0) await writeGuarded(connection, CHECKPOINTS, first);
  const next = rows.filter((row) => !first.includes(row));
  if (next.length === 0) return;
  const gone = await advance(connection, next);
  if (gone.length === 0) return;
  for (const id of gone) seen.forget(id);
  // Documents that were folded without what the store has lost are not to be built on.
  if (await isUnbound(connection))
    for (const { collection } of batches) await dropCollection(connection, layoutOf(collection));
  throw new UnavailableError(`the read store has lost the checkpoints of ${gone.join(', ')}: was it emptied?`);
}

/**
 * Advances checkpoints that were stored before. One that is gone is not created again: the store was emptied, and would
 * look complete without the documents that it has lost.
 * @returns which are gone
 */
async function advance(connection: Connection, rows: readonly Positioned[]): Promise<readonly string[]> {
  const operations = rows.toSorted(byKey(({ _id }) => _id)).map(({ _id, p }): AnyBulkWriteOperation<Positioned> => ({
    replaceOne: { filter: { _id, p: { $lt: p } }, replacement: { p } },
  }));
  const { matchedCount } = await connection.write(
    (database) => database.collection<Positioned>(CHECKPOINTS).bulkWrite(operations, { ordered: false }),
    BULK_MS,
  );
  if (matchedCount === rows.length) return [];
  const ids = rows.map(({ _id }) => _id);
  const present = await connection.read((database) =>
    database
      .collection<Positioned>(CHECKPOINTS)
      .find({ _id: { $in: ids } }, { batchSize: ids.length + 1 })
      .toArray(),
  );
  return ids.filter((id) => !present.some(({ _id }) => _id === id));
}

async function writeCollection(connection: Connection, batches: readonly WriteBatch[]): Promise<void> {
  for (const { collection, documents } of batches) {
    const layout = layoutOf(collection);
    for (const command of commandsOf(layout, documents)) await writeGuarded(connection, layout.collection, command);
  }
}

/** Encodes documents into commands, with only the newest document of each id. */
export function commandsOf(layout: Layout, documents: readonly StoredDocument[]): MongoDocument[][] {
  const newest = new Map<string, MongoDocument>();
  let bytes = 0;
  for (const { id, position, body } of documents) {
    const b = JSON.stringify(body);
    bytes += Buffer.byteLength(b);
    const present = newest.get(id);
    if (present === undefined || present.p < position)
      newest.set(id, { p: position, b, ...valuesOf(layout.fields, body), _id: id });
  }
  if (bytes > MAX_BATCH_BYTES)
    throw new Error(`a batch for ${layout.name} has ${bytes} bytes, at most ${MAX_BATCH_BYTES} are allowed`);
  return inCommands([...newest.values()]);
}
