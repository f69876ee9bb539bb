/** Encodes batches in slices: a large batch must not block the event loop. */
import {
  MAX_BATCH_BYTES,
  type Checkpoint,
  type CollectionSpec,
  type Correction,
  type Scalar,
  type StoredDocument,
  type WriteBatch,
} from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { refuseTooMany, scalarOf } from '../../readStoreRules.js';
import { layoutOf, type FieldColumn } from './layout.js';
import type { WriterClient } from '../writerClient.js';
import type { EncodedCorrection, EncodedDocuments, WriterRequest } from './messages.js';

interface BatchEncoder {
  /** @throws Error when a batch exceeds the port's limits; errors of the writer */
  write(batches: readonly WriteBatch[]): Promise<void>;
}

/** Milliseconds of encoding per turn of the event loop, over all calls. */
const TURN_MS = 4;
const STRIDE = 32;

export function createBatchEncoder(
  writer: Pick<WriterClient<WriterRequest>, 'call' | 'send' | 'sent' | 'deaths'>,
): BatchEncoder {
  let lastCall = 0;
  let turnBegan: number | undefined;
  let previous: Promise<unknown> = Promise.resolve();

  /** Resolves when all parts are sent: the next call need not wait for the answer. */
  async function encode(batches: readonly WriteBatch[]): Promise<{ readonly done: Promise<void> }> {
    const call = ++lastCall;
    const deaths = writer.deaths();
    let documents: EncodedDocuments[] = [];
    let checkpoints: Checkpoint[] = [];
    let fault: { readonly error: unknown } | undefined;
    /** The earlier parts are lost with a dead writer: later ones must not move a checkpoint past them. */
    function refuseIfTorn(): void {
      if (writer.deaths() !== deaths)
        throw new UnavailableError('the read store: its writer ended', { outcomeUnknown: true });
    }
    async function turn(): Promise<void> {
      refuseIfTorn();
      if (documents.length > 0 || checkpoints.length > 0)
        writer.send({ kind: 'write', call, last: false, documents, checkpoints });
      documents = [];
      checkpoints = [];
      await writer.sent();
      turnBegan = undefined;
    }
    try {
      for (const batch of batches) {
        await encodeDocuments(batch, turn, (encoded) => documents.push(encoded));
        if (batch.checkpoint !== undefined) checkpoints.push(batch.checkpoint);
      }
      refuseIfTorn();
    } catch (error) {
      // Earlier documents may be written, which is harmless without a checkpoint.
      documents = [];
      checkpoints = [];
      fault = { error };
    }
    const done = writer.call<void>({ kind: 'write', call, last: true, documents, checkpoints });
    return { done: fault === undefined ? done : done.then(() => Promise.reject(fault.error)) };
  }

  async function encodeDocuments(
    { collection, documents }: WriteBatch,
    turn: () => Promise<void>,
    add: (encoded: EncodedDocuments) => void,
  ): Promise<void> {
    const layout = layoutOf(collection);
    const { columns } = layout;
    let rows: Scalar[] = [];
    let bytes = 0;
    for (let index = 0; index < documents.length; index++) {
      const { id, position, body } = documents[index] as StoredDocument;
      if (index % STRIDE === 0) {
        const now = performance.now();
        if (turnBegan === undefined) {
          turnBegan = now;
          setImmediate(() => (turnBegan = undefined));
        }
        if (now - turnBegan > TURN_MS) {
          if (rows.length > 0) add({ layout, rows });
          rows = [];
          await turn();
        }
      }
      const json = JSON.stringify(body);
      bytes += Buffer.byteLength(json);
      rows.push(id, position, json);
      if (columns.length > 0) addValues(rows, columns, body as Readonly<Record<string, unknown>>);
    }
    if (bytes > MAX_BATCH_BYTES)
      throw new Error(`a batch for ${layout.name} has ${bytes} bytes, at most ${MAX_BATCH_BYTES} are allowed`);
    if (rows.length > 0) add({ layout, rows });
  }

  return {
    async write(batches) {
      for (const { collection, documents } of batches) refuseTooMany(collection, documents, 'a batch');
      const sending = previous.then(() => encode(batches));
      previous = sending.catch(() => undefined);
      const { done } = await sending;
      await done;
    },
  };
}

export function encodeCorrections(collection: CollectionSpec, corrections: readonly Correction[]): EncodedCorrection[] {
  refuseTooMany(collection, corrections, 'corrections');
  const { columns } = layoutOf(collection);
  return corrections.map(({ id, expected, document }) => {
    if (document === undefined) return { id, expected, row: undefined };
    const row: Scalar[] = [id, document.position, JSON.stringify(document.body)];
    addValues(row, columns, document.body as Readonly<Record<string, unknown>>);
    return { id, expected, row };
  });
}

function addValues(rows: Scalar[], columns: readonly FieldColumn[], body: Readonly<Record<string, unknown>>): void {
  for (const { field } of columns) rows.push(scalarOf(body[field]));
}
