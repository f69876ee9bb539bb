/**
 * Turns batches into messages for the writer, a slice at a time, so that the event loop is never held up by a big one.
 */
import { MAX_BATCH_BYTES } from '../../../ports/readStore.js';
import type { CollectionSpec, Correction, Scalar, StoredDocument, WriteBatch } from '../../../ports/readStore.js';
import { UnavailableError } from '../../../ports/unavailable.js';
import { refuseTooMany, scalarOf } from '../../readStoreRules.js';
import { layoutOf } from './layout.js';
import type { FieldColumn } from './layout.js';
import type { WriterLink } from './writerClient.js';
import type { PackedBatch, PackedCorrection } from './messages.js';

/** Writes batches through the link, one call after another. */
export interface Packer {
  /**
   * Resolves once everything is committed. @throws Error when a batch is over the port's limits; what the link throws.
   */
  write(batches: readonly WriteBatch[]): Promise<void>;
}

/** At most so long is packed in one turn of the event loop, in ms, by all calls together. */
const TURN_MS = 4;
/** The clock is looked at after so many documents. */
const STRIDE = 32;

/** @param link to the writer. */
export function createPacker(link: Pick<WriterLink, 'call' | 'send' | 'sent' | 'deaths'>): Packer {
  let lastCall = 0;
  /** When packing began in this turn of the event loop; `undefined`: not yet. */
  let turnBegan: number | undefined;
  let previous: Promise<unknown> = Promise.resolve();

  /** Sends all parts; resolves to the answer still to come, so that the next call need not wait for it. */
  async function pack(batches: readonly WriteBatch[]): Promise<{ readonly done: Promise<void> }> {
    const call = ++lastCall;
    const deaths = link.deaths();
    let parts: PackedBatch[] = [];
    let fault: { readonly error: unknown } | undefined;
    /** A writer that has died took the parts before with it: those after must not bring a checkpoint past them. */
    function refuseIfTorn(): void {
      if (link.deaths() !== deaths)
        throw new UnavailableError('the read store: its writer ended', { outcomeUnknown: true });
    }
    async function turn(): Promise<void> {
      refuseIfTorn();
      if (parts.length > 0) link.send({ kind: 'write', call, last: false, batches: parts });
      parts = [];
      await link.sent();
      turnBegan = undefined;
    }
    try {
      for (const batch of batches) await packBatch(batch, turn, (part) => parts.push(part));
      refuseIfTorn();
    } catch (error) {
      // The documents before this one may be written: without a checkpoint they change nothing for anybody.
      parts = [];
      fault = { error };
    }
    const done = link.call<void>({ kind: 'write', call, last: true, batches: parts });
    return { done: fault === undefined ? done : done.then(() => Promise.reject(fault.error)) };
  }

  async function packBatch(
    { collection, documents, checkpoint }: WriteBatch,
    turn: () => Promise<void>,
    add: (part: PackedBatch) => void,
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
    if (rows.length > 0 || checkpoint !== undefined)
      add({ layout, rows, ...(checkpoint === undefined ? {} : { checkpoint }) });
  }

  return {
    async write(batches) {
      for (const { collection, documents } of batches) refuseTooMany(collection, documents, 'a batch');
      const packed = previous.then(() => pack(batches));
      previous = packed.catch(() => undefined);
      const { done } = await packed;
      await done;
    },
  };
}

/** Corrections as the writer takes them. @throws Error when there are more than the port allows */
export function packCorrections(collection: CollectionSpec, corrections: readonly Correction[]): PackedCorrection[] {
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
