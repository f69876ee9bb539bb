/**
 * A believable past of the service, generated straight into an embedded data folder: purchases of 1 to 100 gifts,
 * charged, issued and told; half of the gifts redeemed some time later, a tenth unredeemed again. The same options give
 * the same history.
 */
import type { SealedText } from '../../src/lib/seal.js';
import { mkdirSync } from 'node:fs';
import { eventLogFile, openEventLog } from '../../src/adapters/embedded/eventStore/log.js';
import { giftStream, type GiftEvent } from '../../src/domain/gift/events.js';
import { redemptionIdAt } from '../../src/domain/gift/redemptionIds.js';
import { notificationStream, type NotificationEvent } from '../../src/domain/notification.js';
import {
  transactionStream,
  type GiftsPurchased,
  type PurchaseEvent,
  type PurchaseReceiver,
} from '../../src/domain/purchase/events.js';
import { issueGifts } from '../../src/domain/purchase/decisions.js';
import type { NewEvent } from '../../src/ports/eventStore.js';
import { random, type Random } from './random.js';

/** A product as purchases name it. */
export interface HistoryProduct {
  readonly id: string;
  readonly brand_id: string;
  readonly name: string;
  readonly sale_price: number;
}

/** Where gifts are redeemed. */
export interface HistoryLocation {
  readonly id: string;
  readonly merchant_id: string;
}

/** What history is wanted. */
export interface HistoryOptions {
  /**
   * The data folder; made when missing. Its event log must be in nobody's use; what stands in it (a catalogue,
   * accounts) becomes as old as the history's beginning.
   */
  readonly dir: string;
  /** About so many events in all (the lives begun are told to their end). */
  readonly events?: number;
  /** About so many gifts in all, in place of `events`. */
  readonly gifts?: number;
  /** Default 1. */
  readonly seed?: number;
  /** Purchases and their charges only: gifts that nothing has happened to. */
  readonly purchasesOnly?: boolean;
  /**
   * What is bought and where it is redeemed; default: 80 products `p0`… of 15 brands `b0`…, 60 locations `s0`… of 12
   * merchants `m0`…
   */
  readonly products?: readonly HistoryProduct[];
  readonly locations?: readonly HistoryLocation[];
  /** Buyers and receivers are `u0` … `u{users - 1}`; default 1,000. */
  readonly users?: number;
  /** How many gifts `sample` names; default 10,000. */
  readonly sampleSize?: number;
  /** Appends what comes before all purchases: a catalogue, accounts. */
  readonly prologue?: (append: (stream: string, events: readonly NewEvent[]) => void) => void;
}

/** One gift of the history. */
export interface HistoryGift {
  readonly id: string;
  /** The user it was sent to, if any. */
  readonly receiver: string | undefined;
  readonly product_id: string;
  readonly status: 'issued' | 'redeemed' | 'unredeemed';
}

/** What was generated. */
export interface History {
  readonly events: number;
  readonly gifts: number;
  readonly purchases: number;
  readonly redeemed: number;
  readonly unredeemed: number;
  /** Gifts picked evenly over the whole history. */
  readonly sample: readonly HistoryGift[];
}

/** A redemption comes up to so many events after the gift: further than any memory of the projector's reaches. */
const LATEST_REDEMPTION = 200_000;
/** Events inserted in one transaction. */
const TRANSACTION_EVENTS = 20_000;
const BEGIN = Date.parse('2026-01-01T00:00:00.000Z');

type LifeEvent = PurchaseEvent | GiftEvent | NotificationEvent;

/** Generates; a million events take some 30 s. */
export function generateHistory(options: HistoryOptions): History {
  const { dir, seed = 1, purchasesOnly = false, users = 1_000, sampleSize = 10_000, prologue } = options;
  const products = options.products ?? defaultProducts();
  const locations = options.locations ?? defaultLocations();
  const chance = random(seed);
  const log = openLog(dir, chance);
  const counts = { gifts: 0, purchases: 0, redeemed: 0, unredeemed: 0 };
  const sample: { -readonly [Field in keyof HistoryGift]: HistoryGift[Field] }[] = [];
  const sampled = new Map<string, (typeof sample)[number]>();
  /** What is still to happen, by the number of events after which it does. */
  const later = new Map<number, (() => void)[]>();
  let scheduled = 0;
  let checked = 0;

  function schedule(run: () => void): void {
    const at = Math.max(log.count(), checked) + 1 + chance.below(LATEST_REDEMPTION);
    const due = later.get(at);
    if (due === undefined) later.set(at, [run]);
    else due.push(run);
    scheduled++;
  }

  function runDue(until: number): void {
    for (; checked <= until; checked++) {
      for (const run of later.get(checked) ?? []) {
        scheduled--;
        run();
      }
      later.delete(checked);
    }
  }

  function keepSample(gift: HistoryGift): void {
    const place = counts.gifts <= sampleSize ? sample.length : chance.below(counts.gifts);
    if (place >= sampleSize) return;
    const replaced = sample[place];
    if (replaced !== undefined) sampled.delete(replaced.id);
    const own = { ...gift };
    sample[place] = own;
    sampled.set(gift.id, own);
  }

  function redeem(id: string, revision: number, product: HistoryProduct, again: boolean): void {
    const location = locations[chance.below(locations.length)] as HistoryLocation;
    const redemption_id = redemptionIdAt(log.now(), chance.hex(10));
    log.append(giftStream(id), revision, {
      type: 'GiftRedeemed',
      data: {
        redemption_id,
        location_id: location.id,
        location_merchant_id: location.merchant_id,
        merchant_id: location.merchant_id,
        brand_id: product.brand_id,
        product_id: product.id,
        value: product.sale_price,
      },
    });
    counts.redeemed++;
    const picked = sampled.get(id);
    if (picked !== undefined) picked.status = 'redeemed';
    if (!again) return;
    schedule(() => {
      log.append(giftStream(id), revision + 1, {
        type: 'GiftUnredeemed',
        data: { redemption_id, location_id: location.id, merchant_id: location.merchant_id },
      });
      counts.unredeemed++;
      const undone = sampled.get(id);
      if (undone !== undefined) undone.status = 'unredeemed';
    });
  }

  function buy(): void {
    const product = products[chance.below(products.length)] as HistoryProduct;
    const purchase = purchaseOf(chance, product, users);
    const stream = transactionStream(purchase.transaction_id);
    const { at } = log.append(stream, 0, { type: 'GiftsPurchased', data: purchase });
    log.append(stream, 1, {
      type: 'ChargeStarted',
      data: { amount: purchase.total, payment_reference: purchase.payment_reference, kind: 'card', prepaid: false },
    });
    log.append(stream, 2, {
      type: 'PaymentCharged',
      data: { amount: purchase.total, provider: 'simulated', charge_id: `ch_${chance.hex(12)}` },
    });
    counts.purchases++;
    for (const { giftId, event } of issueGifts(purchase, at)) {
      counts.gifts++;
      const { user_id: receiver } = event.data.receiver;
      keepSample({ id: giftId, receiver, product_id: product.id, status: 'issued' });
      if (purchasesOnly) continue;
      const issued = log.append(giftStream(giftId), 0, event);
      const attempt = { attempt: 1, asked_by: issued.id };
      const channel = receiver === undefined ? 'sms' : 'push';
      log.append(notificationStream(giftId), 0, {
        type: 'NotificationStarted',
        data: { transaction_id: purchase.transaction_id, channel, ...attempt },
      });
      log.append(notificationStream(giftId), 1, {
        type: 'NotificationSent',
        data: { channel, provider: 'simulated', message_id: chance.hex(8), ...attempt },
      });
      const fate = chance.below(10);
      if (fate < 5) schedule(() => redeem(giftId, 1, product, fate === 0));
    }
  }

  prologue?.((stream, events) => {
    log.appendAll(stream, events);
  });
  const enough = (): boolean =>
    options.gifts === undefined
      ? log.count() + scheduled >= (options.events ?? 1_000_000)
      : counts.gifts >= options.gifts;
  while (!enough()) {
    buy();
    runDue(log.count());
  }
  while (scheduled > 0) runDue(checked);
  const events = log.count();
  log.close();
  return { events, ...counts, sample };
}

function purchaseOf(chance: Random, product: HistoryProduct, users: number): GiftsPurchased['data'] {
  const receivers = Array.from({ length: 1 + chance.below(100) }, (): PurchaseReceiver => {
    const kind = chance.below(10);
    if (kind < 6) return { user_id: `u${chance.below(users)}` };
    if (kind < 9) return { phone_id: chance.hex(11) };
    return {};
  });
  return {
    transaction_id: chance.hex(16),
    seed: chance.hex(32),
    buyer_id: `u${chance.below(users)}`,
    product_id: product.id,
    brand_id: product.brand_id,
    product_name: product.name,
    sale_price: product.sale_price,
    total: product.sale_price * receivers.length,
    payment_reference: `card_${chance.below(users)}`,
    expires_on: '2099-12-31',
    // As long as a sealed message of 60 characters, under a key that is nowhere.
    message: `${chance.hex(11)}.${chance.hex(59)}` as SealedText,
    receivers,
  };
}

function defaultProducts(): HistoryProduct[] {
  return Array.from({ length: 80 }, (_, index) => ({
    id: `p${index}`,
    brand_id: `b${index % 15}`,
    name: `Product ${index}`,
    sale_price: 250 + index * 25,
  }));
}

function defaultLocations(): HistoryLocation[] {
  return Array.from({ length: 60 }, (_, index) => ({ id: `s${index}`, merchant_id: `m${index % 12}` }));
}

/**
 * The event log's file, written without the adapter: nobody waits for these events, so none needs a commit of its own.
 */
function openLog(dir: string, chance: Random) {
  mkdirSync(dir, { recursive: true });
  const database = openEventLog(eventLogFile(dir), {});
  database.pragma('synchronous = OFF');
  database.pragma('cache_size = -200000');
  const insert = database.prepare(
    'INSERT INTO events (position, stream, revision, type, id, at, data, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?)',
  );
  let count = database.prepare<[], number>('SELECT coalesce(max(position), 0) FROM events').pluck().get() as number;
  database.prepare('UPDATE events SET at = ?').run(new Date(BEGIN).toISOString());

  function add(stream: string, revision: number, event: NewEvent): void {
    if (database.inTransaction && count % TRANSACTION_EVENTS === 0) database.exec('COMMIT');
    if (!database.inTransaction) database.exec('BEGIN');
    count++;
    insert.run(
      count,
      stream,
      revision,
      event.type,
      event.id,
      event.at,
      JSON.stringify(event.data),
      JSON.stringify(event.metadata),
    );
  }

  const now = (): string => new Date(BEGIN + count * 20).toISOString();

  return {
    count: () => count,
    now,
    append(stream: string, revision: number, event: LifeEvent): Pick<NewEvent, 'id' | 'at'> {
      const at = now();
      const metadata = {
        commandId: chance.hex(11),
        correlationId: chance.hex(8),
        requestId: chance.hex(8),
        by: { user: 'u0', client: 'c0', roles: [] },
      };
      const id = chance.uuid();
      add(stream, revision, { id, type: event.type, at, data: event.data, metadata });
      return { id, at };
    },
    appendAll(stream: string, events: readonly NewEvent[]): void {
      for (const [revision, event] of events.entries()) add(stream, revision, event);
    },
    close(): void {
      if (database.inTransaction) database.exec('COMMIT');
      database.pragma('wal_checkpoint(TRUNCATE)');
      database.close();
    },
  };
}
