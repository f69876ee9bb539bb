import {
  type CommandContext,
  recordable,
  append,
  type Source,
  type Transacted,
  transactOn,
} from '../../commands/transact.js';
import type { DomainEvent } from '../../domain/decider.js';
import { ConflictError, type EventStore, type ExpectedRevision, type RecordedEvent } from '../../ports/eventStore.js';
import type { Cause } from './cause.js';

const PROCESS_USER = 'system:process-managers';
/** Number of lost races after which a step fails and is retried later. */
export const RACES = 8;

export interface Reason {
  /** Id of the command, the same for the same step and entity in every process. */
  readonly commandId: string;
  readonly cause: Cause;
  /** Whether a simulated provider answered. */
  readonly simulated?: boolean;
  /** Id of a single event, so that the stream holds it once, whichever process appends it. Absent: a new id. */
  readonly eventId?: string;
}

export interface Writer {
  /**
   * @returns the last event; `undefined`: the stream is not at the expected revision. @throws UnavailableError; with
   * `outcomeUnknown` the events may have been appended
   */
  append(
    stream: string,
    events: DomainEvent | readonly [DomainEvent, ...DomainEvent[]],
    expected: ExpectedRevision,
    reason: Reason,
  ): Promise<Cause | undefined>;

  /** Decides and appends; where an earlier run for the same reason has appended, its events are found instead. */
  transact<S>(
    source: Source<S>,
    reason: Reason,
    decide: (state: S) => readonly DomainEvent[] | Promise<readonly DomainEvent[]>,
  ): Promise<Transacted<S>>;
}

/** `now`: present time, milliseconds since the epoch. */
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
