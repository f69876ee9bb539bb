/** How process managers append: with the first event's correlation and the trigger as the cause. */
import { type CommandContext, recordable } from '../../commands/context.js';
import { append, type Source, type Transacted, transactOn } from '../../commands/transact.js';
import type { DomainEvent } from '../../domain/decider.js';
import { ConflictError, type EventStore, type ExpectedRevision, type RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';

/** Who the process managers' events are by. */
const PROCESS_USER = 'system:purchase-process';

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

  /** Runs one decision in the command loop, which finds what an earlier run for the same reason has appended. */
  transact<S>(
    source: Source<S>,
    reason: Reason,
    decide: (state: S) => readonly DomainEvent[] | Promise<readonly DomainEvent[]>,
  ): Promise<Transacted<S>>;
}

/** A writer. `now`: milliseconds since the epoch. */
export function openWriter(events: EventStore, now: () => number): Writer {
  const contextOf = ({ commandId, cause, simulated }: Reason): CommandContext => ({
    commandId,
    causationId: cause.id,
    correlationId: cause.correlationId,
    by: { user: PROCESS_USER },
    ...(simulated === true ? { simulated } : {}),
    now: new Date(now()).toISOString(),
  });
  return {
    async append(stream, decided, expected, reason) {
      const { cause, eventId } = reason;
      const context = contextOf(reason);
      try {
        const made = recordable('type' in decided ? [decided] : decided, context);
        const appended = await append(
          events,
          stream,
          eventId === undefined ? made : made.map((event) => ({ ...event, id: eventId })),
          expected,
        );
        const last = appended.at(-1) as RecordedEvent;
        return { id: last.id, at: context.now, revision: last.revision, correlationId: cause.correlationId };
      } catch (error) {
        if (error instanceof ConflictError) return undefined;
        throw error;
      }
    },

    transact: async (source, reason, decide) => transactOn(events, source, contextOf(reason), decide),
  };
}
