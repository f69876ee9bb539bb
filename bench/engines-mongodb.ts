/**
 * The read store on MongoDB beside the bare client: batch writes, getMany, get, in turns against the same server; the median round counts.
 * `TEST_MONGODB_URL` names the server (a database of its own is made there and dropped); without it the test server beside the project is
 * started, which looks at every document for a guarded write: its figures say little.
 * `--documents=N` (default 20,000), `--rounds=N` (default 7).
 */
import { parseArgs } from 'node:util';
import { openMongoReadStore } from '../src/adapters/mongodb.js';
import type { CollectionSpec, StoredDocument } from '../src/ports/readStore.js';
import { contractServer, newDatabase } from '../test/support/mongoServer.js';
import { median, table, verdict } from './support/report.js';

const { values } = parseArgs({ options: { documents: { type: 'string', default: '20000' }, rounds: { type: 'string', default: '7' } } });
const DOCUMENTS = Number(values.documents);
const BATCH = 1_000;
const MANY = 100;
const GET_MANYS = 400;
const GETS = 4_000;

const server = await contractServer();
const database = newDatabase(server.url);
const store = await openMongoReadStore({ url: database.url });
const collection: CollectionSpec = { name: 'bench', version: 1, indexes: [{ fields: ['transaction_id'] }, { fields: ['receiver_id', 'status'] }] };
const CHECKPOINT = 'bench@1';
await store.ensure(collection);

// What one would write by hand: the body as it is, the same indexes, the same guard, the same care.
interface Plain {
  readonly _id: string;
  readonly p: string;
  readonly [field: string]: unknown;
}
const db = database.client.db(database.name, { writeConcern: { w: 'majority', journal: true } });
const plain = db.collection<Plain>('plain');
const plainCheckpoints = db.collection<Plain>('plain_checkpoints');
await plain.createIndexes([{ key: { transaction_id: 1, _id: 1 } }, { key: { receiver_id: 1, status: 1, _id: 1 } }]);

const position = (n: number): string => String(n).padStart(20, '0');
const idOf = (n: number): string => ((n * 7_919) % DOCUMENTS).toString(16).padStart(20, '0');
/** A gift as the read model holds it, some 600 bytes. */
function bodyOf(n: number): Record<string, unknown> {
  return {
    status: n % 3 === 0 ? 'redeemed' : 'sent', transaction_id: `transaction-${n % 2_000}`, sender_id: `user-${n % 500}`, receiver_id: `user-${n % 5_000}`, product_id: `product-${n % 100}`,
    brand_id: `brand-${n % 20}`, retail_pence: 1_050, expiry_date: '2027-03-01', issued_at: '2026-03-01T12:00:00.000Z', message: 'Many happy returns of the day, and see you soon. '.repeat(3),
    redemptions: n % 3 === 0 ? [{ id: `redemption-${n}`, location_id: `store-${n % 300}`, at: '2026-04-01T09:30:00.000Z', merchant_id: `merchant-${n % 10}` }] : [], voucher: null, claimed: { by: `user-${n % 5_000}`, at: null },
  };
}
let written = 0;

/** A batch of the documents from `start` on, at a position above all before. */
function nextBatch(start: number): StoredDocument[] {
  written += 1;
  return Array.from({ length: BATCH }, (_, i) => ({ id: idOf(start + i), position: position(written), body: bodyOf(start + i) }));
}

/** Runs `count` of them, so many side by side. @returns how many a second. */
async function rate(count: number, sideBySide: number, one: (n: number) => Promise<unknown>): Promise<number> {
  let next = 0;
  const started = performance.now();
  await Promise.all(Array.from({ length: sideBySide }, async () => {
    for (let n = next++; n < count; n = next++) await one(n);
  }));
  return (count / (performance.now() - started)) * 1_000;
}

const starts = Array.from({ length: DOCUMENTS / BATCH }, (_, k) => k * BATCH);
const idsFrom = (n: number): string[] => Array.from({ length: MANY }, (_, i) => idOf(n * 31 + i * 97));

/** One kind of call: by the adapter and by the bare client, each told how many times a second. */
interface Kind {
  readonly name: string;
  readonly adapter: () => Promise<number>;
  readonly bare: () => Promise<number>;
}

const kinds: readonly Kind[] = [
  {
    name: 'documents written/s (batches of 1,000)',
    adapter: async () => BATCH * (await rate(starts.length, 1, (n) => store.write([{ collection, documents: nextBatch(starts[n] as number), checkpoint: { projection: CHECKPOINT, position: position(written) } }]))),
    bare: async () =>
      BATCH *
      (await rate(starts.length, 1, async (n) => {
        const operations = nextBatch(starts[n] as number)
          .toSorted((a, b) => (a.id < b.id ? -1 : 1))
          .map(({ id, position: p, body }) => ({ replaceOne: { filter: { _id: id, p: { $lt: p } }, replacement: { p, ...body }, upsert: true } }));
        await plain.bulkWrite(operations, { ordered: false });
        await plainCheckpoints.bulkWrite([{ replaceOne: { filter: { _id: CHECKPOINT, p: { $lt: position(written) } }, replacement: { p: position(written) }, upsert: true } }], { ordered: false });
      })),
  },
  {
    name: 'getMany/s (100 ids, 8 at once)',
    adapter: async () => rate(GET_MANYS, 8, (n) => store.getMany(collection, idsFrom(n))),
    bare: async () => rate(GET_MANYS, 8, (n) => plain.find({ _id: { $in: idsFrom(n) } }).toArray()),
  },
  { name: 'get/s (1 at once)', adapter: async () => rate(GETS / 4, 1, (n) => store.get(collection, idOf(n))), bare: async () => rate(GETS / 4, 1, (n) => plain.findOne({ _id: idOf(n) })) },
  { name: 'get/s (16 at once)', adapter: async () => rate(GETS, 16, (n) => store.get(collection, idOf(n))), bare: async () => rate(GETS, 16, (n) => plain.findOne({ _id: idOf(n) })) },
];

const rows: { name: string; adapter: number; bare: number; ratio: number }[] = [];
try {
  for (const { name, adapter, bare } of kinds) {
    await bare();
    await adapter();
    const rounds: { adapter: number; bare: number }[] = [];
    // Who goes first alternates: what the server does afterwards falls on either.
    for (let n = 0; n < Number(values.rounds); n++) rounds.push(n % 2 === 0 ? { bare: await bare(), adapter: await adapter() } : { adapter: await adapter(), bare: await bare() });
    rows.push({ name, adapter: median(rounds.map((one) => one.adapter)), bare: median(rounds.map((one) => one.bare)), ratio: median(rounds.map((one) => one.adapter / one.bare)) });
  }
} finally {
  await store.close();
  await database.destroy();
  await server.stop();
}
console.log(`${DOCUMENTS.toLocaleString('en')} documents of ${JSON.stringify(bodyOf(0)).length} bytes, two indexes, ${server.own ? 'the test server' : 'the server at TEST_MONGODB_URL'}`);
table(rows);
for (const { name, ratio } of rows) verdict(`of what the bare client does, ${name}`, ratio, { atLeast: 0.8 });
