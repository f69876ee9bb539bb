/**
 * The gift or purchase that a delivery includes alongside the feed's entry. It is folded from its own stream up to the
 * event, so that each attempt sends the same body. It holds nothing personal (docs/api/webhooks.md).
 */
import { fold } from '../domain/decider.js';
import { giftStream, isSomebody } from '../domain/gift/events.js';
import { giftAggregate, type IssuedGift } from '../domain/gift/state.js';
import { pounds } from '../domain/money.js';
import { transactionStream } from '../domain/purchase/events.js';
import { transactionStatus, type TransactionStatus } from '../domain/purchase/status.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import type { FeedEntry } from '../projections/feed/feed.js';
import { reversalsProjection } from '../projections/reversals.js';
import type { RECEIVER_KINDS } from '../domain/webhookEndpoint.js';
import { transactionIn } from '../projections/transactions.js';
import { foldDocument } from '../runtime/readmodels/index.js';

/** Money is in pounds with two decimals, as in all answers of the API. */
export interface GiftFacts {
  readonly status: 'sent' | 'redeemed' | 'cancelled';
  readonly product_id: string;
  readonly brand_id: string;
  readonly value: string;
  /** `nobody`: the first user to claim the gift. */
  readonly receiver: (typeof RECEIVER_KINDS)[number];
  /** Merchant of a redemption or its reversal; absent for other events. */
  readonly merchant_id?: string;
}

export interface TransactionFacts {
  readonly status: TransactionStatus;
  readonly product_id: string;
  readonly brand_id: string;
  /** Number of gifts bought. */
  readonly gifts: number;
  readonly retail: string;
}

export type Subject = { readonly gift: GiftFacts } | { readonly transaction: TransactionFacts };

/** @throws UnavailableError */
export async function subjectOf(
  events: Pick<EventStore, 'read'>,
  position: Position,
  { data: { transaction_id, gift_id }, merchant }: Pick<FeedEntry, 'data' | 'merchant'>,
): Promise<Subject> {
  const stream = gift_id === undefined ? transactionStream(transaction_id) : giftStream(gift_id);
  const history = (await events.read(stream)).filter((event) => event.position <= position);
  if (gift_id === undefined) return { transaction: transactionFacts(history, transaction_id) };
  const gift = fold(giftAggregate, history);
  if (gift.status === 'none') throw new Error(`an event of ${stream}, which was never issued`);
  return { gift: { ...giftFacts(gift), ...(merchant === undefined ? {} : { merchant_id: merchant }) } };
}

function giftFacts({ status, issued, claimedBy }: IssuedGift): GiftFacts {
  const { product_id, brand_id, value, receiver } = issued;
  return {
    status: status === 'issued' ? 'sent' : status,
    product_id,
    brand_id,
    value: pounds(value),
    receiver:
      receiver.user_id !== undefined || claimedBy !== undefined
        ? 'user'
        : isSomebody(receiver)
          ? 'phone number'
          : 'nobody',
  };
}

function transactionFacts(history: readonly RecordedEvent[], id: string): TransactionFacts {
  const bought = transactionIn(history);
  if (bought === undefined) throw new Error(`an event of the purchase ${id}, which was never made`);
  const { product_id, brand_id, count, total } = bought;
  const status = transactionStatus(bought, foldDocument(reversalsProjection, history, id));
  return { status, product_id, brand_id, gifts: count, retail: pounds(total) };
}
