/** NoteDelivery: what a notification provider tells of a message after it has taken it. */
import { setTimeout as sleep } from 'node:timers/promises';
import {
  failDelivery,
  failAttempt,
  notificationAggregate,
  type NotificationEvent,
  notificationStream,
  type NotificationUndelivered,
} from '../domain/notification.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';

const LOOK_MS = 50;

/** A message that could not be delivered. */
export interface Undelivered extends Readonly<NotificationUndelivered['data']> {
  /** Which telling of the gift's receiver it is, from 1. */
  readonly attempt: number;
}

/**
 * Notes once that a message could not be delivered. Its sending may not have been noted yet: that is waited for,
 * `waitMs` at most. Who noted it later would take it for sent, and nobody would hear that it failed: so then the
 * telling itself is noted as failed.
 * @returns `unsettled`: that telling was not begun, or its end is noted, and not as this message. @throws
 * UnavailableError
 */
export async function noteUndelivered(
  events: EventStore,
  giftId: string,
  { attempt, ...failed }: Undelivered,
  context: CommandContext,
  waitMs: number,
): Promise<'recorded' | 'known' | 'unsettled'> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    const over = performance.now() >= deadline;
    let settled = true;
    const stream = notificationStream(giftId);
    const { own, replayed } = await transact(events, notificationAggregate, stream, context, (_, history) => {
      const noted = history as unknown as NotificationEvent[];
      const undelivered = failDelivery(noted, failed);
      const decided = undelivered ?? (over ? failAttempt(noted, attempt, failed.cause) : []);
      settled = undelivered !== undefined || decided.length > 0;
      return decided;
    });
    if (settled) return own.length > 0 && !replayed ? 'recorded' : 'known';
    if (over) return 'unsettled';
    await sleep(LOOK_MS);
  }
}
