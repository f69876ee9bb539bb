/** A process's handle of a simulated read store. It keeps the port's guarantees as a MongoDB's client does. */
import { setMaxListeners } from 'node:events';
import { refuseTooMany } from '../../../src/adapters/readStoreRules.js';
import { after as inMs, endTimer } from '../../../src/lib/world.js';
import type { Position } from '../../../src/ports/eventStore.js';
import {
  type Body,
  type CollectionSpec,
  MAX_BATCH_BYTES,
  type ReadStore,
  type StoredDocument,
  type StoredText,
  type WriteBatch,
} from '../../../src/ports/readStore.js';
import { UnavailableError } from '../../../src/ports/unavailable.js';
import type { Link } from '../world/link.js';
import { type Documents, documents, type EncodedDocument } from './documents.js';
import { openSimulatedRecords, type RecordRows, recordRows } from './records.js';

/** A read store's disk: what survives crashes. */
export interface ReadStoreDisk {
  readonly documents: Documents;
  readonly records: RecordRows;
}

export function readStoreDisk(): ReadStoreDisk {
  return { documents: documents(), records: recordRows() };
}

/** Virtual ms after which a waiter that hears nothing looks for itself. */
const DEAF_MS = 500;
const TEXTS_AT_ONCE = 500;

/** Opens a handle of the store for the process at the other end of the link. */
export function openSimulatedReadStore(disk: ReadStoreDisk, link: Link): ReadStore {
  const stored = disk.documents;
  const closing = new AbortController();
  // A request may wait for all read models at once.
  setMaxListeners(0, closing.signal);
  const refuse = (): void => {
    if (closing.signal.aborted) throw new UnavailableError('the read store is closed');
  };
  const read = async <T>(text: string, effect: () => T): Promise<T> => {
    refuse();
    return link.call({ text, effect, reads: true });
  };
  const change = async <T>(text: string, effect: () => T): Promise<T> => {
    refuse();
    return link.call({ text, effect });
  };
  return {
    engine: 'mongodb',
    records: openSimulatedRecords(disk.records, { link, refuse }),
    ensure: async (spec) => change(`ensure ${shown(spec)}`, () => stored.ensure(spec)),
    drop: async (spec) => change(`drop ${shown(spec)}`, () => stored.drop(spec)),
    get: async <B extends Body>(spec: CollectionSpec, id: string) =>
      (await read(`get ${shown(spec)}`, () => stored.getMany<B>(spec, [id])))[0],
    getMany: async <B extends Body>(spec: CollectionSpec, ids: readonly string[]) =>
      read(`get many ${shown(spec)}`, () => stored.getMany<B>(spec, ids)),
    find: async <B extends Body>(spec: CollectionSpec, query: Parameters<ReadStore['find']>[1]) =>
      read(`find ${shown(spec)}`, () => stored.find<B>(spec, query)),
    async count(spec, query) {
      const effect = (): number => stored.find(spec, { ...query, skip: 0, limit: Infinity }).length;
      return read(`count ${shown(spec)}`, effect);
    },
    misindexed: async (spec, ids) => read(`misindexed ${shown(spec)}`, () => stored.misindexed(spec, ids)),
    async write(batches) {
      refuse();
      const encoded = batches.map(encodedBatch);
      const text = `write ${batches.map(({ collection }) => shown(collection)).join(' ')}`;
      const effect = (): void => {
        for (const { collection, rows } of encoded) {
          // The server stores a command's documents one after the other, and may stop anywhere.
          const partly = link.happens('writes a part');
          stored.write(collection, partly ? rows.slice(0, rows.length >> 1) : rows);
          if (partly) throw new UnavailableError('a batch was written in part', { outcomeUnknown: true });
        }
        for (const { checkpoint } of batches) if (checkpoint !== undefined) stored.advance(checkpoint);
      };
      await link.call({ text, effect, repeatable: true });
    },
    async correct(spec, corrections) {
      refuse();
      refuseTooMany(spec, corrections, 'corrections');
      const encoded = corrections.map(({ id, expected, document }) => ({
        id,
        expected,
        ...(document === undefined ? {} : { document: encodedDocument(document) }),
      }));
      return change(`correct ${shown(spec)}`, () => encoded.map((one) => stored.correct(spec, one)));
    },
    checkpoint: async (projection) => read(`checkpoint ${projection}`, () => stored.checkpoint(projection)),
    async reached(projection, position, timeoutMs) {
      refuse();
      return reached(stored, link, { projection, position, timeoutMs, closed: closing.signal });
    },
    active: async (name) => read(`active ${name}`, () => stored.active(name)),
    versions: async (name) => read(`versions ${name}`, () => stored.versions(name)),
    activate: async (name, version, options = {}) =>
      change(`activate ${name} ${version}`, () => stored.activate(name, version, options)),
    deactivate: async (name, version) =>
      change(`deactivate ${name} ${version}`, () => stored.deactivate(name, version)),
    scrub: async () => change('scrub', () => undefined),
    texts: () => texts(disk, link),
    boundTo: async (logId) => change('bound to', () => stored.boundTo(logId)),
    ping: async () => read('ping', () => undefined),
    async close() {
      closing.abort();
    },
  };
}

const shown = ({ name, version }: CollectionSpec): string => `${name}@${version}`;

const encodedDocument = ({ id, position, body }: StoredDocument): EncodedDocument => ({
  id,
  position,
  body: JSON.stringify(body),
});

interface EncodedBatch {
  readonly collection: CollectionSpec;
  readonly rows: readonly EncodedDocument[];
}

/** @throws Error when the batch exceeds the port's limits */
function encodedBatch({ collection, documents: written }: WriteBatch): EncodedBatch {
  refuseTooMany(collection, written, 'a batch');
  const rows = written.map(encodedDocument);
  const bytes = rows.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
  if (bytes > MAX_BATCH_BYTES)
    throw new Error(`a batch for ${shown(collection)} has ${bytes} bytes, at most ${MAX_BATCH_BYTES} are allowed`);
  return { collection, rows };
}

async function* texts(
  { documents: stored, records }: ReadStoreDisk,
  link: Link,
): AsyncGenerator<readonly StoredText[]> {
  const all = await link.call({ text: 'texts', effect: () => [...stored.texts(), ...records.texts()], reads: true });
  for (let from = 0; from < all.length; from += TEXTS_AT_ONCE) yield all.slice(from, from + TEXTS_AT_ONCE);
}

interface Waiting {
  readonly projection: string;
  readonly position: Position;
  readonly timeoutMs: number;
  readonly closed: AbortSignal;
}

/** Waits for a checkpoint: told of each change, and looking for itself now and then. */
async function reached(stored: Documents, link: Link, waiting: Waiting): Promise<boolean> {
  const { projection, position, timeoutMs, closed } = waiting;
  const isReached = async (): Promise<boolean> =>
    link.call({
      text: `reached ${projection}`,
      effect: () => (stored.checkpoint(projection) ?? '') >= position,
      reads: true,
    });
  const state = { late: false, changed: false };
  let wake: () => void = () => undefined;
  const end = (): void => {
    state.late = true;
    wake();
  };
  const unwatch = stored.watch(() => {
    if (!link.connected()) return unwatch();
    return link.deliver('checkpoint', () => {
      state.changed = true;
      wake();
    });
  });
  const deadline = inMs(timeoutMs, end);
  closed.addEventListener('abort', end, { once: true });
  try {
    for (;;) {
      state.changed = false;
      if (await isReached()) return true;
      if (timeoutMs <= 0 || state.late) return false;
      await new Promise<void>((resolve) => {
        if (state.changed || state.late) return resolve();
        const poll = inMs(DEAF_MS, resolve);
        wake = () => {
          endTimer(poll);
          resolve();
        };
        return undefined;
      });
      if (closed.aborted) return false;
    }
  } finally {
    unwatch();
    endTimer(deadline);
    closed.removeEventListener('abort', end);
  }
}
