/**
 * How fast all projections are built from an empty read store, beside what can't be avoided: reading the log, and writing the same documents.
 * `node dist/bench/catch-up.js [--events 1000000] [--dir FOLDER]`: a folder that holds a history already is used as it is, and kept.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import pino from 'pino';
import { openEmbeddedEventStore } from '../src/adapters/embedded/eventStore.js';
import { eventLogFile } from '../src/adapters/embedded/eventStoreLog.js';
import { openEmbeddedReadStore } from '../src/adapters/embedded/readStore.js';
import { MAX_BATCH_DOCUMENTS, type CollectionSpec, type ReadStore, type StoredDocument } from '../src/ports/readStore.js';
import { collectionOf } from '../src/projections/projection.js';
import { startProjector } from '../src/projections/projector.js';
import { PROJECTIONS } from '../src/readModels.js';
import { generateHistory } from './support/history.js';

/** Writes under way at once, so that the store's thread never waits. */
const WRITES_IN_FLIGHT = 3;

const { values } = parseArgs({ options: { events: { type: 'string', default: '1000000' }, dir: { type: 'string' }, generate: { type: 'boolean', default: false } } });
const dir = values.dir ?? mkdtempSync(join(tmpdir(), 'catch-up-'));

if (values.generate) {
  generateHistory({ dir, events: Number(values.events) });
} else {
  try {
    await measure();
  } finally {
    if (values.dir === undefined) rmSync(dir, { recursive: true });
  }
}

async function measure(): Promise<void> {
  // In a process of its own: its memory is not what is measured here.
  if (!existsSync(eventLogFile(dir))) {
    execFileSync(process.execPath, [fileURLToPath(import.meta.url), '--generate', '--dir', dir, '--events', values.events], { stdio: 'inherit' });
  }
  const caughtUp = await catchUp();
  const read = await rawRead();
  const written = await sameDocuments();
  const slower = Math.max(read.seconds, written.seconds);
  const line = (what: string, count: number, unit: string, seconds: number): string =>
    `${what.padEnd(34)}${String(count).padStart(9)} ${unit.padEnd(10)}${seconds.toFixed(2).padStart(7)} s${Math.round(count / seconds).toLocaleString('en').padStart(10)} /s`;
  process.stdout.write(
    [
      line('reading the log raw', read.events, 'events', read.seconds),
      line('writing the same documents', written.documents, 'documents', written.seconds),
      line('catching up all projections', read.events, 'events', caughtUp.seconds),
      `ratio to the slower of the two: ${(slower / caughtUp.seconds).toFixed(2)} (at least 0.5)`,
      `peak resident memory ${Math.round(caughtUp.peakBytes / 1e6)} MB, longest event loop delay ${caughtUp.delayMs.toFixed(0)} ms`,
      '',
    ].join('\n'),
  );
}

async function catchUp(): Promise<{ seconds: number; peakBytes: number; delayMs: number }> {
  for (const suffix of ['', '-wal', '-shm']) rmSync(join(dir, `read.db${suffix}`), { force: true });
  const events = await openEmbeddedEventStore({ dir });
  const store = await openEmbeddedReadStore({ dir });
  const delay = monitorEventLoopDelay({ resolution: 1 });
  delay.enable();
  const began = performance.now();
  const logger = pino({ level: 'warn' });
  const projector = await startProjector({ events, store, projections: PROJECTIONS, logger, holder: 'bench' });
  while (!projector.status().every((status) => status.caughtUp)) await sleep(5);
  const seconds = (performance.now() - began) / 1e3;
  delay.disable();
  const peakBytes = process.resourceUsage().maxRSS * 1024;
  await projector.close();
  await store.close();
  await events.close();
  return { seconds, peakBytes, delayMs: delay.max / 1e6 };
}

async function rawRead(): Promise<{ seconds: number; events: number }> {
  const store = await openEmbeddedEventStore({ dir });
  const began = performance.now();
  let events = 0;
  for await (const batch of store.readAll(undefined)) events += batch.events.length;
  const seconds = (performance.now() - began) / 1e3;
  await store.close();
  return { seconds, events };
}

/** Writes what catching up has made, each document once, into another store. */
async function sameDocuments(): Promise<{ seconds: number; documents: number }> {
  const source = await openEmbeddedReadStore({ dir });
  const collections = PROJECTIONS.map(collectionOf);
  const batches: { collection: CollectionSpec; documents: readonly StoredDocument[] }[] = [];
  for (const collection of collections) batches.push(...(await batchesOf(source, collection)));
  await source.close();
  const other = mkdtempSync(join(dir, 'same-'));
  const target = await openEmbeddedReadStore({ dir: other });
  for (const collection of collections) await target.ensure(collection, { deferIndexes: true });
  const began = performance.now();
  let documents = 0;
  const underWay = new Set<Promise<void>>();
  for (const batch of batches) {
    documents += batch.documents.length;
    const writing = target.write([batch]).then(() => void underWay.delete(writing));
    underWay.add(writing);
    if (underWay.size >= WRITES_IN_FLIGHT) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  for (const collection of collections) await target.ensure(collection);
  const seconds = (performance.now() - began) / 1e3;
  await target.close();
  rmSync(other, { recursive: true });
  return { seconds, documents };
}

/** All documents in batches, in the order of their positions: as they came up. */
async function batchesOf(store: ReadStore, collection: CollectionSpec): Promise<{ collection: CollectionSpec; documents: readonly StoredDocument[] }[]> {
  const all: StoredDocument[] = [];
  for (;;) {
    const after = all.at(-1)?.id;
    const page = await store.find(collection, { ...(after === undefined ? {} : { where: { id: { gt: after } } }), sort: [['id', 1]], limit: 5_000 });
    if (page.length === 0) break;
    all.push(...page);
  }
  all.sort((a, b) => (a.position < b.position ? -1 : 1));
  const batches = [];
  for (let from = 0; from < all.length; from += MAX_BATCH_DOCUMENTS) batches.push({ collection, documents: all.slice(from, from + MAX_BATCH_DOCUMENTS) });
  return batches;
}
