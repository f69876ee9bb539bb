import { readGiftAndNotification } from '../../commands/readStreams.js';
import { fold } from '../../domain/decider.js';
import { isExpired } from '../../domain/gift/decisions.js';
import type { GiftIssued } from '../../domain/gift/events.js';
import { type Gift, giftAggregate } from '../../domain/gift/state.js';
import { notificationAttempts, type Occasion } from '../../domain/notification.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { type Cause, causeOf } from '../runner/cause.js';
import {
  type Attempt,
  type AttemptMemory,
  CANCELLED,
  EXPIRED,
  NO_REMINDER,
  type NotifyDeps,
  REASSIGNED,
  REDEEMED,
  resumeAttempt,
  startAttempt,
} from './notifyStep.js';

/** Rare, so the streams alone decide. @returns whether nothing is left to do @throws as `notify` does */
export async function resend(deps: NotifyDeps, giftId: string, cause: Cause, memory: AttemptMemory): Promise<boolean> {
  const [gift, notification] = await readGiftAndNotification(deps.events, giftId);
  const { next } = notificationAttempts(gift, notification);
  if (next.do === 'nothing') return true;
  const issued = gift.find(
    (event): event is RecordedEvent & { readonly data: GiftIssued['data'] } => event.type === 'GiftIssued',
  );
  if (issued === undefined) throw new Error('a resend of a gift that was never issued');
  const purchase = await deps.purchase(issued.data.transaction_id);
  const needless = whyNeedless(fold(giftAggregate, gift), deps.now());
  const stopped = ({ outdated, reminder }: Occasion): string | undefined => {
    if (needless === CANCELLED) return needless;
    if (reminder !== undefined) return outdated || Date.parse(reminder.until) <= deps.now() ? NO_REMINDER : undefined;
    return outdated ? REASSIGNED : needless;
  };
  const attempt = (number: number, occasion: Occasion): Attempt => {
    const { id, receiver, reminder } = occasion;
    const why = stopped(occasion);
    return {
      giftId,
      number,
      askedBy: id,
      receiver: receiver === 'bought' ? (purchase.receivers[issued.data.index] ?? {}) : receiver,
      purchase,
      ...(reminder === undefined ? {} : { reminder }),
      ...(why === undefined ? {} : { stopped: why }),
    };
  };
  const last = notification.at(-1);
  if (next.do === 'start') {
    await startAttempt(deps, attempt(next.number, next.occasion), memory, last?.revision ?? 'none', cause);
  } else if (last !== undefined) {
    const { number, occasion, startedAt, channel } = next.attempt;
    await resumeAttempt(deps, attempt(number, occasion), memory, { startedAt, channel, last: causeOf(last) });
  }
  return false;
}

/** No receiver is told of a gift that can't be used any more, as after a long wait. @param now milliseconds */
function whyNeedless(gift: Gift, now: number): string | undefined {
  if (gift.status === 'none') return undefined;
  if (gift.status === 'cancelled') return CANCELLED;
  if (gift.status === 'redeemed') return REDEEMED;
  return isExpired(gift.issued.expires_on, new Date(now).toISOString()) ? EXPIRED : undefined;
}
