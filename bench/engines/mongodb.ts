/** The read store on MongoDB beside the bare client: batches written, getMany, get. */
import { openMongoReadStore } from '../../src/adapters/mongodb/readStore.js';
import type { CollectionSpec, StoredDocument } from '../../src/ports/readStore.js';
import { contractServer, newDatabase } from '../../test/support/engines/mongoServer.js';
import { type Arena, inFlight } from '../support/contest.js';

const BATCH = 1_000;
const MANY = 100;
const CHECKPOINT = 'bench@1';

/** What one would write by hand: the body as it is, the same indexes, the same guard, the same care. */
interface Plain {
  readonly _id: string;
  readonly p: string;
  readonly [field: string]: unknown;
}

const position = (n: number): string => String(n).padStart(20, '0');

/** A gift as the read model holds it, some 600 bytes. */
function bodyOf(n: number): Record<string, unknown> {
  return {
    status: n % 3 === 0 ? 'redeemed' : 'sent',
    transaction_id: `transaction-${n % 2_000}`,
    sender_id: `user-${n % 500}`,
    receiver_id: `user-${n % 5_000}`,
    product_id: `product-${n % 100}`,
    brand_id: `brand-${n % 20}`,
    retail_pence: 1_050,
    expiry_date: '2027-03-01',
    issued_at: '2026-03-01T12:00:00.000Z',
    message: 'Many happy returns of the day, and see you soon. '.repeat(3),
    redemptions:
      n % 3 === 0
        ? [
            {
              id: `redemption-${n}`,
              location_id: `store-${n % 300}`,
              at: '2026-04-01T09:30:00.000Z',
              merchant_id: `merchant-${n % 10}`,
            },
          ]
        : [],
    voucher: null,
    claimed: { by: `user-${n % 5_000}`, at: null },
  };
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, n) => n);

/**
 * In a database of its own on the server at TEST_MONGODB_URL; without one on the test server, which looks at every
 * document for a guarded write and judges nothing.
 * @param documents so many of them, written anew in each round
 */
export async function mongoArena(documents: number): Promise<Arena> {
  const server = await contractServer();
  const database = newDatabase(server.url);
  const store = await openMongoReadStore({ url: database.url });
  const collection: CollectionSpec = {
    name: 'bench',
    version: 1,
    indexes: [{ fields: ['transaction_id'] }, { fields: ['receiver_id', 'status'] }],
  };
  await store.ensure(collection);
  const db = database.client.db(database.name, { writeConcern: { w: 'majority', journal: true } });
  const plain = db.collection<Plain>('plain');
  const plainCheckpoints = db.collection<Plain>('plain_checkpoints');
  await plain.createIndexes([{ key: { transaction_id: 1, _id: 1 } }, { key: { receiver_id: 1, status: 1, _id: 1 } }]);

  const idOf = (n: number): string => ((n * 7_919) % documents).toString(16).padStart(20, '0');
  const idsFrom = (n: number): string[] => upTo(MANY).map((i) => idOf(n * 31 + i * 97));
  const starts = upTo(documents / BATCH).map((k) => k * BATCH);
  let written = 0;
  /** A batch of the documents from `start` on, at a position above all before. */
  const nextBatch = (start: number): StoredDocument[] => {
    written += 1;
    return upTo(BATCH).map((i) => ({ id: idOf(start + i), position: position(written), body: bodyOf(start + i) }));
  };
  const getting = (count: number): number[] => upTo(count === 1 ? 1_000 : 4_000);

  return {
    engine: server.own ? 'MongoDB, the test server' : 'MongoDB, the server at TEST_MONGODB_URL',
    judged: !server.own,
    contests: [
      {
        what: 'documents written, batches of 1,000 (a second)',
        ours: async () =>
          BATCH *
          (await inFlight(1, starts, (start) =>
            store.write([
              {
                collection,
                documents: nextBatch(start),
                checkpoint: { projection: CHECKPOINT, position: position(written) },
              },
            ]),
          )),
        bare: async () =>
          BATCH *
          (await inFlight(1, starts, async (start) => {
            const operations = nextBatch(start)
              .toSorted((a, b) => (a.id < b.id ? -1 : 1))
              .map(({ id, position: p, body }) => ({
                replaceOne: { filter: { _id: id, p: { $lt: p } }, replacement: { p, ...body }, upsert: true },
              }));
            await plain.bulkWrite(operations, { ordered: false });
            await plainCheckpoints.bulkWrite(
              [
                {
                  replaceOne: {
                    filter: { _id: CHECKPOINT, p: { $lt: position(written) } },
                    replacement: { p: position(written) },
                    upsert: true,
                  },
                },
              ],
              { ordered: false },
            );
          })),
      },
      {
        what: 'getMany of 100 ids, 8 in flight (a second)',
        ours: async () => inFlight(8, upTo(400), (n) => store.getMany(collection, idsFrom(n))),
        bare: async () => inFlight(8, upTo(400), (n) => plain.find({ _id: { $in: idsFrom(n) } }).toArray()),
      },
      ...[1, 16, 64].map((count) => ({
        what: `get, ${count} in flight (a second)`,
        ours: async () => inFlight(count, getting(count), (n) => store.get(collection, idOf(n))),
        bare: async () => inFlight(count, getting(count), (n) => plain.findOne({ _id: idOf(n) })),
      })),
    ],
    async close() {
      await store.close();
      await database.destroy();
      await server.stop();
    },
  };
}
