/** The events of a purchase, without ids and receivers of gifts that were not requested. */
import { deriveGiftIds } from '../../domain/giftIds.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import type { SkippedGifts } from '../../domain/purchase/refund.js';
import type { RecordedEvent } from '../../ports/eventStore.js';

/** Fields of a refund's data that name gifts. */
export interface NamesGifts {
  readonly refund_id?: string;
  readonly gift_ids?: readonly string[];
  readonly kept?: SkippedGifts;
}

interface RedactedPurchase {
  /** Events without refunds of other gifts. In other events, other gifts and receivers are only counted. */
  readonly events: readonly RecordedEvent[];
  /** Whether a refund is only of other gifts. */
  isOthers(refundId: string): boolean;
}

export function redactOtherGifts(purchase: readonly RecordedEvent[], giftIds: readonly string[]): RedactedPurchase {
  const bought = purchase[0]?.data as GiftsPurchased['data'] | undefined;
  if (bought === undefined || giftIds.length === bought.receivers.length)
    return { events: purchase, isOthers: () => false };
  const requested = new Set(giftIds);
  const own = new Set<string>();
  const others = new Set<string>();
  for (const { data } of purchase) {
    const { refund_id: refundId, ...named } = data as NamesGifts;
    if (refundId === undefined) continue;
    const ids = giftsIn(named);
    if (ids.some((id) => requested.has(id))) own.add(refundId);
    // A refund without gifts (money that bought nothing) concerns all gifts.
    else if (ids.length > 0) others.add(refundId);
  }
  const isOthers = (refundId: string): boolean => others.has(refundId) && !own.has(refundId);
  const events = purchase
    .filter(({ data }) => !isOthers((data as NamesGifts).refund_id ?? ''))
    .map((event) =>
      event.type === 'GiftsPurchased' ? withOwnReceivers(event, requested) : withOwnGifts(event, requested),
    );
  return { events, isOthers };
}

export function giftsIn({ gift_ids = [], kept = {} }: NamesGifts): readonly string[] {
  return [...gift_ids, ...Object.values(kept).flat()];
}

function withOwnReceivers(event: RecordedEvent, requested: ReadonlySet<string>): RecordedEvent {
  const data = event.data as GiftsPurchased['data'];
  const ids = deriveGiftIds(data.seed, data.receivers.length);
  const receivers = data.receivers.filter((_, index) => requested.has(ids[index]?.gift_id ?? ''));
  return { ...event, data: { ...data, receivers, other_receivers: data.receivers.length - receivers.length } };
}

function withOwnGifts(event: RecordedEvent, requested: ReadonlySet<string>): RecordedEvent {
  const { gift_ids, kept } = event.data as NamesGifts;
  const all = giftsIn(event.data as NamesGifts);
  const others = all.filter((id) => !requested.has(id)).length;
  if (others === 0) return event;
  const data: Record<string, unknown> = { ...event.data, other_gifts: others };
  if (gift_ids !== undefined) data['gift_ids'] = gift_ids.filter((id) => requested.has(id));
  if (kept !== undefined)
    data['kept'] = Object.fromEntries(
      Object.entries(kept)
        .map(([why, ids]) => [why, ids.filter((id) => requested.has(id))] as const)
        .filter(([, ids]) => ids.length > 0),
    );
  return { ...event, data };
}
