import { HISTORY_ONLY } from '../domain/decider.js';
import { giftStream } from '../domain/gift/events.js';
import {
  type NotificationFailed,
  notificationAttempts,
  notificationStream,
  type Placed,
} from '../domain/notification.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';

/** Cause in `NotificationFailed`; support's reason is in the event that discards the work. */
const ABANDONED = 'given up by support';

/**
 * Fails each notification of a gift that was requested before the position `before` and is not settled.
 * @throws UnavailableError
 */
export async function giveUpNotification(
  events: EventStore,
  giftId: string,
  context: CommandContext,
  before: Position,
): Promise<void> {
  const gift = await events.read(giftStream(giftId));
  await transact(events, HISTORY_ONLY, notificationStream(giftId), context, (_, history) => {
    const given: NotificationFailed[] = [];
    let log: readonly Placed[] = history;
    for (;;) {
      const { next } = notificationAttempts(gift, log);
      if (next.do === 'nothing') return given;
      const { number, occasion } = next.do === 'find out' ? next.attempt : next;
      if (occasion.position > before) return given;
      const failed: NotificationFailed = {
        type: 'NotificationFailed',
        data: { cause: ABANDONED, attempt: number, asked_by: occasion.id },
      };
      given.push(failed);
      log = [...log, { ...failed, id: `${given.length}`, at: context.now, position: '', revision: 0 }];
    }
  });
}
