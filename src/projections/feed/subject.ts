/**
 * The body of a webhook: the feed's event, with the gift or purchase that it is about. These are folded from their own
 * stream up to the event, so that each attempt sends the same body. It holds nothing personal (docs/api/webhooks.md).
 */
import { fold } from '../../domain/decider.js';
import { giftStream, receiverKind, type ReceiverKind } from '../../domain/gift/events.js';
import { presentReceiver } from '../../domain/gift/decisions.js';
import { giftAggregate, type IssuedGift } from '../../domain/gift/state.js';
import { pounds } from '../../domain/money.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { transactionStatus, type TransactionStatus } from '../../domain/purchase/status.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { foldDocument } from '../../runtime/readmodels/index.js';
import { reversalsProjection } from '../reversals.js';
import { transactionIn } from '../transactions.js';
import type { EntryData, FeedEntry } from './feed.js';
import { type FeedEvent, feedEvent } from './feedEvent.js';
import type { PlacedEntry } from './feedPage.js';

/** Money is in pounds with two decimals, as in all answers of the API. */
interface GiftFacts {
  readonly status: 'sent' | 'redeemed' | 'cancelled';
  readonly product_id: string;
  readonly brand_id: string;
  readonly value: string;
  readonly receiver: ReceiverKind;
  /** Merchant of a redemption or its reversal; absent for other events. */
  readonly merchant_id?: string;
}

interface TransactionFacts {
  readonly status: TransactionStatus;
  readonly product_id: string;
  readonly brand_id: string;
  /** Number of gifts bought. */
  readonly gifts: number;
  readonly retail: string;
}

type Subject = { readonly gift: GiftFacts } | { readonly transaction: TransactionFacts };

export type WebhookEvent = Omit<FeedEvent, 'data'> & { readonly data: EntryData & Subject };

/** @throws UnavailableError, also for an entry of the feed that is about nothing on the log */
export async function webhookEvent(
  events: Pick<EventStore, 'read'>,
  placed: PlacedEntry,
  logId: string,
): Promise<WebhookEvent> {
  const { data, ...event } = feedEvent(placed, logId);
  return { ...event, data: { ...data, ...(await subjectOf(events, placed.position, placed.entry)) } };
}

async function subjectOf(
  events: Pick<EventStore, 'read'>,
  position: Position,
  { data: { transaction_id, gift_id }, merchant }: Pick<FeedEntry, 'data' | 'merchant'>,
): Promise<Subject> {
  const stream = gift_id === undefined ? transactionStream(transaction_id) : giftStream(gift_id);
  const history = (await events.read(stream)).filter((event) => event.position <= position);
  if (gift_id === undefined) return { transaction: transactionFacts(history, transaction_id) };
  const gift = fold(giftAggregate, history);
  if (gift.status === 'none') throw new UnavailableError(`the feed has an event of ${stream}, which was never issued`);
  return { gift: { ...giftFacts(gift), ...(merchant === undefined ? {} : { merchant_id: merchant }) } };
}

function giftFacts(gift: IssuedGift): GiftFacts {
  const { status, issued } = gift;
  const { product_id, brand_id, value } = issued;
  return {
    status: status === 'issued' ? 'sent' : status,
    product_id,
    brand_id,
    value: pounds(value),
    receiver: receiverKind(presentReceiver(gift)),
  };
}

function transactionFacts(history: readonly RecordedEvent[], id: string): TransactionFacts {
  const bought = transactionIn(history);
  if (bought === undefined)
    throw new UnavailableError(`the feed has an event of the purchase ${id}, which was never made`);
  const { product_id, brand_id, count, total } = bought;
  const status = transactionStatus(bought, foldDocument(reversalsProjection, history, id));
  return { status, product_id, brand_id, gifts: count, retail: pounds(total) };
}
