/**
 * Records that a gift's receiver is not told on account of what was asked so far: what has begun has failed, what is
 * due will not begin.
 */
import { giftStream } from '../domain/gift.js';
import { type NotificationFailed, notificationAggregate, notificationStream } from '../domain/notification.js';
import { type Placed, notificationAttempts } from '../domain/notificationAttempts.js';
import type { EventStore, Position } from '../ports/eventStore.js';
import type { CommandContext } from './context.js';
import { transact } from './transact.js';

/** The cause that stands in the notification's stream; the reason stands with the discarding. */
const GIVEN_UP = 'given up by support';

/**
 * Gives up every telling of a gift that is not settled and that was asked for before `before`: what was asked for since
 * is somebody's wish of today. Again: nothing is left to give up. @throws UnavailableError
 */
export async function giveUpNotification(
  events: EventStore,
  giftId: string,
  context: CommandContext,
  before: Position,
): Promise<void> {
  const gift = await events.read(giftStream(giftId));
  await transact(events, notificationAggregate, notificationStream(giftId), context, (_, history) => {
    const given: NotificationFailed[] = [];
    let log: readonly Placed[] = history;
    for (;;) {
      const { next } = notificationAttempts(gift, log);
      if (next.do === 'nothing') return given;
      const { number, ask } = next.do === 'find out' ? next.attempt : next;
      if (ask.position > before) return given;
      const failed: NotificationFailed = {
        type: 'NotificationFailed',
        data: { cause: GIVEN_UP, attempt: number, asked_by: ask.id },
      };
      given.push(failed);
      log = [...log, { ...failed, id: `${given.length}`, at: context.now, position: '', revision: 0 }];
    }
  });
}
