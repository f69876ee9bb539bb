/**
 * How process managers append: with the first event's correlation, the trigger as the cause, and the same ids where an
 * outcome is unknown.
 */
import { recordable } from '../../commands/context.js';
import { append } from '../../commands/handle.js';
import type { DomainEvent } from '../../domain/decider.js';
import { ConflictError, type EventStore, type ExpectedRevision, type RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';

/** Who the process managers' events are by. */
const PROCESS_USER = 'system:purchase-process';

/** The command of a gift's issue, where nothing else is appended with it. */
export const issueCommand = (giftId: string): string => `issue-${giftId}`;

/** Why an event is appended. */
export interface Reason {
  /** Names the step and its entity; the same whoever does it, however often. */
  readonly commandId: string;
  /** The event that led to it. */
  readonly cause: Cause;
  /** A simulated provider answered. */
  readonly simulated?: boolean;
  /**
   * The event's own id, where it is to stand there once whoever appends it: for one event whose place in the stream
   * does not matter. Absent: a new one.
   */
  readonly eventId?: string;
}

/** Appends for process managers. */
export interface Writer {
  /**
   * Appends one event, or several at once. @returns the last one as seen, or `undefined` when the stream is not at the
   * expected revision.
   * @throws UnavailableError; with `outcomeUnknown` they may stand there.
   */
  append(
    stream: string,
    events: DomainEvent | readonly [DomainEvent, ...DomainEvent[]],
    expected: ExpectedRevision,
    reason: Reason,
  ): Promise<Cause | undefined>;
}

/** A writer. `now`: milliseconds since the epoch. */
export function openWriter(events: EventStore, now: () => number): Writer {
  return {
    async append(stream, decided, expected, { commandId, cause, simulated, eventId }) {
      const at = new Date(now()).toISOString();
      const context = {
        commandId,
        causationId: cause.id,
        correlationId: cause.correlationId,
        by: { user: PROCESS_USER },
        ...(simulated === true ? { simulated } : {}),
        now: at,
      };
      try {
        const made = recordable('type' in decided ? [decided] : decided, context);
        const appended = await append(
          events,
          stream,
          eventId === undefined ? made : made.map((event) => ({ ...event, id: eventId })),
          expected,
        );
        const last = appended.at(-1) as RecordedEvent;
        return { id: last.id, at, revision: last.revision, correlationId: cause.correlationId };
      } catch (error) {
        if (error instanceof ConflictError) return undefined;
        throw error;
      }
    },
  };
}
