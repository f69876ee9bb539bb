import { HISTORY_ONLY } from '../domain/decider.js';
import {
  failDelivery,
  failAttempt,
  type NotificationEvent,
  notificationStream,
  type NotificationUndelivered,
} from '../domain/notification.js';
import { sleep, ticks } from '../lib/world.js';
import type { EventStore, Recorded } from '../ports/eventStore.js';
import { type CommandContext, transact } from './transact.js';

const POLL_MS = 50;

interface Undelivered extends Readonly<NotificationUndelivered['data']> {
  /** Number of the notification attempt, counted from 1. */
  readonly attempt: number;
}

/**
 * Records once that a message could not be delivered. Where its sending is not recorded yet, waits `waitMs` at most for
 * that. Then the notification itself is recorded as failed, so that it can't be recorded as sent later.
 * @returns `unsettled`: the notification was not started, or ended with another message
 * @throws UnavailableError
 */
export async function noteUndelivered(
  events: EventStore,
  giftId: string,
  { attempt, ...failed }: Undelivered,
  context: CommandContext,
  waitMs: number,
): Promise<'recorded' | 'known' | 'unsettled'> {
  const deadline = ticks() + waitMs;
  for (;;) {
    const over = ticks() >= deadline;
    let settled = true;
    const stream = notificationStream(giftId);
    const { own, replayed } = await transact(events, HISTORY_ONLY, stream, context, (_, history) => {
      const recorded = history as readonly Recorded<NotificationEvent>[];
      const undelivered = failDelivery(recorded, failed);
      const decided = undelivered ?? (over ? failAttempt(recorded, attempt, failed.cause) : []);
      settled = undelivered !== undefined || decided.length > 0;
      return decided;
    });
    if (settled) return own.length > 0 && !replayed ? 'recorded' : 'known';
    if (over) return 'unsettled';
    await sleep(POLL_MS);
  }
}
