/** Writes batches: documents in commands of at most 1,000 or 2 MB, and the checkpoints after them. */
import type { Position } from '../../ports/eventStore.js';
import { MAX_BATCH_BYTES } from '../../ports/readStore.js';
import type { StoredDocument, WriteBatch } from '../../ports/readStore.js';
import { refuseTooMany } from '../readStoreRules.js';
import { writeGuarded } from './guarded.js';
import { CHECKPOINTS, layoutOf, valuesOf } from './layout.js';
import type { Layout, MongoDocument } from './layout.js';
import type { Link } from './connection.js';

/**
 * The server takes far larger commands; but one of 4 MB to a server that falls silent is never given up by the driver.
 * Ids and queried fields count too.
 */
const MAX_COMMAND_BYTES = 2_000_000;
/** Bytes around the texts of a document. */
const OVERHEAD = 200;

/**
 * Writes the documents of all batches, of each collection in their order, and then the checkpoints: of each projection
 * the highest.
 * @throws Error when a batch is over the port's limits; what the link throws.
 */
export async function writeBatches(link: Link, batches: readonly WriteBatch[]): Promise<void> {
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
  const written = await Promise.allSettled([...perCollection.values()].map((own) => writeCollection(link, own)));
  for (const result of written) if (result.status === 'rejected') throw result.reason;
  if (checkpoints.size > 0)
    await writeGuarded(
      link,
      CHECKPOINTS,
      Array.from(checkpoints, ([_id, p]) => ({ _id, p })),
    );
}

async function writeCollection(link: Link, batches: readonly WriteBatch[]): Promise<void> {
  for (const { collection, documents } of batches) {
    const layout = layoutOf(collection);
    for (const command of commandsOf(layout, documents)) await writeGuarded(link, layout.collection, command);
  }
}

/**
 * The documents as they are stored, each id once, parted where a command would grow too large. @throws Error when the
 * bodies are over the port's limit.
 */
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
  const all = [...newest.values()];
  const size = all.map(sizeOf);
  const total = size.reduce((sum, one) => sum + one, 0);
  if (total <= MAX_COMMAND_BYTES) return [all];
  const commands: MongoDocument[][] = [];
  let left = 0;
  for (const [index, document] of all.entries()) {
    const own = size[index] as number;
    if (own > left) {
      commands.push([]);
      left = MAX_COMMAND_BYTES;
    }
    left -= own;
    commands.at(-1)?.push(document);
  }
  return commands;
}

function sizeOf(document: MongoDocument): number {
  let bytes = OVERHEAD;
  for (const value of Object.values(document)) if (typeof value === 'string') bytes += Buffer.byteLength(value);
  // The id stands in the filter and in the document.
  return bytes + Buffer.byteLength(document._id);
}
