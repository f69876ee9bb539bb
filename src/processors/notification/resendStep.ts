import { readGiftAndNotification } from '../../commands/readStreams.js';
import { fold } from '../../domain/decider.js';
import type { GiftIssued } from '../../domain/gift/events.js';
import { giftAggregate } from '../../domain/gift/state.js';
import { notificationAttempts, type Occasion, whyNotNotified } from '../../domain/notification.js';
import type { RecordedEvent } from '../../ports/eventStore.js';
import { type Cause, causeOf } from '../runner/index.js';
import {
  type Attempt,
  type AttemptMemory,
  NO_REMINDER,
  type NotifyDeps,
  REASSIGNED,
  resumeAttempt,
  startAttempt,
} from './notifyStep.js';

/**
 * Makes or resumes the next attempt. Resends are rare, so each is decided by reading its streams.
 * @returns whether nothing is left to do
 * @throws as `notify` does
 */
export async function resend(deps: NotifyDeps, giftId: string, cause: Cause, memory: AttemptMemory): Promise<boolean> {
  const [gift, notification] = await readGiftAndNotification(deps.events, giftId);
  const { next } = notificationAttempts(gift, notification);
  if (next.do === 'nothing') return true;
  const issued = gift.find(
    (event): event is RecordedEvent & { readonly data: GiftIssued['data'] } => event.type === 'GiftIssued',
  );
  if (issued === undefined) throw new Error('a resend of a gift that was never issued');
  const purchase = await deps.purchase(issued.data.transaction_id);
  const unusable = whyNotNotified(fold(giftAggregate, gift), new Date(deps.now()).toISOString());
  const stopped = ({ outdated, reminder }: Occasion): string | undefined => {
    if (unusable !== undefined) return unusable;
    if (reminder !== undefined) return outdated || Date.parse(reminder.until) <= deps.now() ? NO_REMINDER : undefined;
    return outdated ? REASSIGNED : undefined;
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
