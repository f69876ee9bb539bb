import type { Position } from '../../ports/eventStore.js';
import { MAX_BATCH_BYTES, type StoredDocument, type WriteBatch } from '../../ports/readStore.js';
import { refuseTooMany } from '../readStoreRules.js';
import { inCommands } from './commands.js';
import { writeGuarded } from './guarded.js';
import { CHECKPOINTS, layoutOf, valuesOf, type Layout, type MongoDocument } from './layout.js';
import type { Connection } from './connection.js';

/**
 * Writes batches: documents first, then the checkpoints.
 * @throws Error when a batch exceeds the port's limits; errors of the connection
 */
export async function writeBatches(connection: Connection, batches: readonly WriteBatch[]): Promise<void> {
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
  if (checkpoints.size > 0)
    await writeGuarded(
      connection,
      CHECKPOINTS,
      Array.from(checkpoints, ([_id, p]) => ({ _id, p })),
    );
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
