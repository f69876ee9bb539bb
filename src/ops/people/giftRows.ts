/** Found gifts as support lists them, from their streams (docs/support.md#finding-gifts). */
import { type FoundGift as GiftInStream, giftOf, giftToIssue } from '../../commands/giftSource.js';
import { readGiftAndNotification } from '../../commands/readStreams.js';
import { fold } from '../../domain/decider.js';
import { deriveGiftIds, type GiftIds } from '../../domain/giftIds.js';
import { issueGift } from '../../domain/purchase/decisions.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { type MadePurchase, purchaseAggregate } from '../../domain/purchase/state.js';
import { inParallel } from '../../lib/async/inParallel.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { supportedStatus, type SupportedGift } from '../history/supportedGift.js';
import type { FoundGift } from './personGifts.js';

/** A found gift as its streams have it now. Times are ISO 8601, UTC, milliseconds. */
export interface GiftRow extends FoundGift, Pick<SupportedGift, 'gift_status' | 'expiry_date'> {
  readonly product_id: string;
  /** Price of the gift, in pence. */
  readonly value: number;
  readonly blocked: boolean;
  /** Type of the last event of the gift or its notification; of one that is not issued, of its purchase. */
  readonly last_event: string;
  readonly last_event_at: string;
}

const PARALLEL_READS = 16;

/** Rows of these gifts, in their order. @throws UnavailableError */
export async function giftRows(
  events: Pick<EventStore, 'read'>,
  gifts: readonly FoundGift[],
): Promise<readonly GiftRow[]> {
  const rows: GiftRow[] = [];
  const bought = purchasesOf(events);
  await inParallel(gifts.entries(), PARALLEL_READS, async ([index, found]) => {
    const streams = await readGiftAndNotification(events, found.gift_id);
    const purchase = streams[0].length === 0 ? await bought(found.transaction_id) : undefined;
    const own = purchase?.history ?? streams.flat();
    const inStream = await giftOf(streams[0], () => unissued(found, purchase));
    rows[index] = giftRow(found, inStream, own);
  });
  return rows;
}

function giftRow(found: FoundGift, inStream: GiftInStream, events: readonly RecordedEvent[]): GiftRow {
  const { product_id, value, expires_on } = inStream.gift.issued;
  const last = events.reduce((latest, event) => (event.position > latest.position ? event : latest));
  return {
    ...found,
    product_id,
    value,
    gift_status: supportedStatus(inStream),
    blocked: (inStream.gift.blockedBy ?? []).length > 0,
    expiry_date: expires_on,
    last_event: last.type,
    last_event_at: last.at,
  };
}

interface Bought {
  readonly history: readonly RecordedEvent[];
  readonly made: MadePurchase;
  readonly ids: readonly GiftIds[];
}

/** Purchases of gifts that are not issued, each read once: one may have thousands. */
function purchasesOf(events: Pick<EventStore, 'read'>): (transactionId: string) => Promise<Bought> {
  const known = new Map<string, Promise<Bought>>();
  const read = async (transactionId: string): Promise<Bought> => {
    const history = await events.read(transactionStream(transactionId));
    const made = fold(purchaseAggregate, history);
    if (made.status === 'none') throw new Error(`purchase ${transactionId} has gifts and was never made`);
    return { history, made, ids: deriveGiftIds(made.purchase.seed, made.purchase.receivers.length) };
  };
  return async (transactionId) => {
    const purchase = known.get(transactionId) ?? read(transactionId);
    known.set(transactionId, purchase);
    return purchase;
  };
}

function unissued({ gift_id }: FoundGift, bought: Bought | undefined): GiftInStream {
  const index = bought?.ids.findIndex((ids) => ids.gift_id === gift_id) ?? -1;
  const own = bought?.ids[index];
  if (bought === undefined || own === undefined) throw new Error(`gift ${gift_id} is not one of its purchase`);
  const { purchase, purchasedAt, status } = bought.made;
  return giftToIssue(issueGift(purchase, purchasedAt, index, own), status);
}
