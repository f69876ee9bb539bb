/**
 * Tells what the first telling does not: a telling that support retries, and each one that a reassignment or support
 * asks for. Rare, so it decides from the gift's and its notification's streams alone, every time.
 */
import { fold } from '../../domain/decider.js';
import { type GiftIssued, giftStream } from '../../domain/gift.js';
import { notificationStream } from '../../domain/notification.js';
import { type GiftsPurchased, purchaseAggregate, transactionStream } from '../../domain/purchase.js';
import { type Ask, tellingsOf } from '../../domain/telling.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { type Cause, causeOf } from '../runner/cause.js';
import { begin, CANCELLED, REASSIGNED, takeUp, type TellDeps, type Telling, type TellMemory } from './notifyStep.js';

/**
 * Does the next thing that is to be told of a gift. `cause`: the event that brought it up.
 * @returns whether nothing is left to tell. @throws Error: try again, as `tell` does
 */
export async function retell(deps: TellDeps, giftId: string, cause: Cause, memory: TellMemory): Promise<boolean> {
  const [gift, notification] = await Promise.all([
    deps.events.read(giftStream(giftId)),
    deps.events.read(notificationStream(giftId)),
  ]);
  const { next } = tellingsOf(gift, notification);
  if (next.do === 'nothing') return true;
  const issued = gift.find(
    (event): event is RecordedEvent & { readonly data: GiftIssued['data'] } => event.type === 'GiftIssued',
  );
  if (issued === undefined) throw new Error('a gift that was never issued is to be told of');
  const purchase = await purchaseOf(deps.events, issued.data.transaction_id);
  const cancelled = gift.some(({ type }) => type === 'GiftCancelled');
  const telling = (attempt: number, ask: Ask): Telling => ({
    giftId,
    attempt,
    askedBy: ask.id,
    receiver: ask.receiver === 'bought' ? (purchase.receivers[issued.data.index] ?? {}) : ask.receiver,
    purchase,
    ...(cancelled ? { stopped: CANCELLED } : ask.outdated ? { stopped: REASSIGNED } : {}),
  });
  const last = notification.at(-1);
  if (next.do === 'begin') {
    await begin(deps, telling(next.number, next.ask), memory, last?.revision ?? 'none', cause);
  } else if (last !== undefined) {
    const { number, ask, startedAt, channel } = next.attempt;
    await takeUp(deps, telling(number, ask), memory, { startedAt, channel, last: causeOf(last) });
  }
  return false;
}

async function purchaseOf(events: EventStore, transactionId: string): Promise<GiftsPurchased['data']> {
  const purchase = fold(purchaseAggregate, await events.read(transactionStream(transactionId)));
  if (purchase.status === 'none') throw new Error('a gift names a purchase that was never made');
  return purchase.purchase;
}
