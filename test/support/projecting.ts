/**
 * What tests of projections start from: a folder with both embedded stores, events as the service appends them, and a
 * way to wait.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { openEmbeddedEventStore } from '../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../src/adapters/embedded/readStore/readStore.js';
import { giftStream } from '../../src/domain/gift.js';
import { deriveGiftIds } from '../../src/domain/giftIds.js';
import { transactionStream, type GiftsPurchased, type PurchaseReceiver } from '../../src/domain/purchase.js';
import type { Appended, EventStore, ExpectedRevision, NewEvent } from '../../src/ports/eventStore.js';
import type { CollectionSpec, ReadStore, StoredDocument } from '../../src/ports/readStore.js';
import { gifts } from '../../src/projections/gifts.js';
import { startProjector, type Projector, type ProjectorOptions } from '../../src/runtime/readmodels/projector.js';
import { transactions } from '../../src/projections/transactions.js';
import { until } from './until.js';

/** Nothing is printed. */
export const silent = pino({ level: 'silent' });

/** One installation in a temporary folder. Whatever a test opens through it is closed with it, last in, first out. */
export interface Installation {
  readonly dir: string;
  readonly events: EventStore;
  readonly store: ReadStore;
  /** Another process's view of the read store. */
  openStore(): Promise<ReadStore>;
  /** A projector of gifts and transactions with a short lease. */
  project(options?: Partial<ProjectorOptions>): Promise<Projector>;
  destroy(): Promise<void>;
}

/** Time of the tests' leases, in ms. */
export const LEASE_TEST_MS = 300;

/** Makes one. */
export async function installation(): Promise<Installation> {
  const dir = mkdtempSync(join(tmpdir(), 'projecting-'));
  const events = await openEmbeddedEventStore({ dir });
  const store = await openEmbeddedReadStore({ dir });
  const closes: (() => Promise<void>)[] = [() => events.close(), () => store.close()];
  let projectors = 0;
  return {
    dir,
    events,
    store,
    async openStore() {
      const other = await openEmbeddedReadStore({ dir });
      closes.push(() => other.close());
      return other;
    },
    async project(options = {}) {
      const holder = `projector ${++projectors}`;
      const projector = await startProjector({
        events,
        store,
        projections: [gifts, transactions],
        logger: silent,
        holder,
        leaseMs: LEASE_TEST_MS,
        ...options,
      });
      closes.push(() => projector.close());
      return projector;
    },
    async destroy() {
      for (const close of closes.reverse()) await close();
      rmSync(dir, { recursive: true });
    },
  };
}

/** Runs a test with an installation of its own. */
export function installed(test: (house: Installation) => Promise<void>): () => Promise<void> {
  return async () => {
    const house = await installation();
    try {
      await test(house);
    } finally {
      await house.destroy();
    }
  };
}

/** An event ready to be appended. */
export function newEvent(type: string, data: object, at = '2026-03-01T10:00:00.000Z'): NewEvent {
  return { id: randomUUID(), type, at, data, metadata: { commandId: 'c', correlationId: 'c', by: {} } };
}

/** Appends to whatever revision the stream has, unless told otherwise. */
export function append(
  events: EventStore,
  stream: string,
  type: string,
  data: object,
  expected: ExpectedRevision = 'any',
): Promise<Appended> {
  return events.append(stream, [newEvent(type, data)], expected);
}

/** A purchase that was appended. */
export interface Bought extends Appended {
  readonly transaction: string;
  readonly gifts: readonly string[];
}

/** The data of a purchase with these receivers. */
export function purchase(
  receivers: readonly PurchaseReceiver[],
  transaction_id: string = randomUUID(),
): GiftsPurchased['data'] {
  return {
    transaction_id,
    seed: randomBytes(32).toString('hex'),
    buyer_id: 'u1',
    product_id: 'p1',
    brand_id: 'b1',
    product_name: 'Coffee',
    sale_price: 350,
    total: 350 * receivers.length,
    payment_reference: 'card_1',
    expires_on: '2027-03-01',
    message: 'Enjoy',
    receivers,
  };
}

/** Buys gifts for these receivers. */
export async function buy(events: EventStore, receivers: readonly PurchaseReceiver[] = [{}]): Promise<Bought> {
  const data = purchase(receivers);
  const appended = await append(events, transactionStream(data.transaction_id), 'GiftsPurchased', data, 'none');
  return {
    ...appended,
    transaction: data.transaction_id,
    gifts: deriveGiftIds(data.seed, receivers.length).map((ids) => ids.gift_id),
  };
}

/** Redeems, without any of the checks. */
export function redeem(events: EventStore, gift: string, redemption_id = `r-${gift}`): Promise<Appended> {
  const data = {
    redemption_id,
    location_id: 's1',
    location_merchant_id: 'm1',
    merchant_id: 'm1',
    brand_id: 'b1',
    product_id: 'p1',
    value: 350,
  };
  return append(events, giftStream(gift), 'GiftRedeemed', data);
}

/** Waits until everything in the log is projected, checkpoints of all projections included. */
export async function settled(projector: Projector, events: EventStore): Promise<void> {
  const end = await events.end();
  await until(() => {
    const kept = projector.kept();
    return (
      kept.length > 0 && kept.every(({ caughtUp, position = '' }) => caughtUp && (end === undefined || position >= end))
    );
  }, 'the projector');
}

/** Every document of a collection, by id. */
export async function contents(
  store: ReadStore,
  collection: CollectionSpec,
): Promise<ReadonlyMap<string, StoredDocument>> {
  return new Map((await store.find(collection, {})).map((document) => [document.id, document]));
}
