/** NoteDelivery: what a notification provider tells of a message after it has taken it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { failDelivery, type NotificationEvent, notificationStream, type NotificationUndelivered } from '../domain/notification.js';
import type { EventStore } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { handle } from './handle.js';

const LOOK_MS = 50;

/**
 * Notes once that a message could not be delivered. Its sending may not have been noted yet: that is waited for, `waitMs` at most.
 * @returns `unsettled`: it never was. @throws UnavailableError
 */
export async function noteUndelivered(events: EventStore, giftId: string, failed: NotificationUndelivered['data'], context: CommandContext, waitMs: number): Promise<'recorded' | 'known' | 'unsettled'> {
  const deadline = performance.now() + waitMs;
  for (;;) {
    let settled = true;
    const { own, replayed } = await handle(events, notificationStream(giftId), context, (history) => {
      const decided = failDelivery(history as unknown as NotificationEvent[], failed);
      settled = decided !== undefined;
      return decided ?? [];
    });
    if (settled) return own.length > 0 && !replayed ? 'recorded' : 'known';
    if (performance.now() >= deadline) return 'unsettled';
    await sleep(LOOK_MS);
  }
}
