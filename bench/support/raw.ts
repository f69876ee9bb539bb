/** What filling read models can't do without, each by itself: reading the log, and writing the same documents. */
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import {
  MAX_BATCH_DOCUMENTS,
  type CollectionSpec,
  type ReadStore,
  type StoredDocument,
} from '../../src/ports/readStore.js';

/** Writes under way at once, so that the store's thread never waits. */
const WRITES_IN_FLIGHT = 3;

/** How long something took. */
export interface Took {
  readonly seconds: number;
  /** Events read, or documents written. */
  readonly count: number;
}

/** Reads the whole log of a data folder. */
export async function rawRead(dir: string): Promise<Took> {
  const store = await openEmbeddedEventStore({ dir });
  const began = performance.now();
  let count = 0;
  for await (const batch of store.readAll(undefined)) count += batch.events.length;
  const seconds = (performance.now() - began) / 1e3;
  await store.close();
  return { seconds, count };
}

/** Writes what stands in these collections of a data folder, each document once, into another store. */
export async function sameDocuments(dir: string, collections: readonly CollectionSpec[]): Promise<Took> {
  const source = await openEmbeddedReadStore({ dir });
  const batches: { collection: CollectionSpec; documents: readonly StoredDocument[] }[] = [];
  for (const collection of collections) batches.push(...(await batchesOf(source, collection)));
  await source.close();
  const other = mkdtempSync(join(dir, 'same-'));
  const target = await openEmbeddedReadStore({ dir: other });
  for (const collection of collections) await target.ensure(collection, { deferIndexes: true });
  const began = performance.now();
  let count = 0;
  const underWay = new Set<Promise<void>>();
  for (const batch of batches) {
    count += batch.documents.length;
    const writing = target.write([batch]).then(() => void underWay.delete(writing));
    underWay.add(writing);
    if (underWay.size >= WRITES_IN_FLIGHT) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  for (const collection of collections) await target.ensure(collection);
  const seconds = (performance.now() - began) / 1e3;
  await target.close();
  rmSync(other, { recursive: true });
  return { seconds, count };
}

/** All documents in batches, in the order of their positions: as they came up. */
async function batchesOf(
  store: ReadStore,
  collection: CollectionSpec,
): Promise<{ collection: CollectionSpec; documents: readonly StoredDocument[] }[]> {
  const all: StoredDocument[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const page = await store.find(collection, {
      ...(after === undefined ? {} : { where: { id: { gt: after } } }),
      sort: [['id', 1]],
      limit: 5_000,
    });
    if (page.length === 0) break;
    all.push(...page);
  }
  all.sort((a, b) => (a.position < b.position ? -1 : 1));
  const batches = [];
  for (let from = 0; from < all.length; from += MAX_BATCH_DOCUMENTS)
    batches.push({ collection, documents: all.slice(from, from + MAX_BATCH_DOCUMENTS) });
  return batches;
}
