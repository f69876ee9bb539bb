/** How process managers append: with the first event's correlation, the trigger as the cause, and the same ids where an outcome is unknown. */
import { randomUUID } from 'node:crypto';
import type { DomainEvent } from '../domain/decider.js';
import { ConflictError, type EventStore, type ExpectedRevision, type NewEvent } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Seen } from './seen.js';

/** Who the process managers' events are by. */
export const PROCESS_USER = 'system:purchase-process';

const REPEATS_OF_UNKNOWN = 3;

/** Why an event is appended. */
export interface Reason {
  /** Names the step and its entity; the same whoever does it, however often. */
  readonly commandId: string;
  /** The event that led to it. */
  readonly cause: Seen;
  /** A simulated provider answered. */
  readonly simulated?: boolean;
}

/** Appends for process managers. */
export interface Writer {
  /**
   * Appends one event. @returns it as seen, or `undefined` when the stream is not at the expected revision.
   * @throws UnavailableError; with `outcomeUnknown` it may stand there.
   */
  append(stream: string, event: DomainEvent, expected: ExpectedRevision, reason: Reason): Promise<Seen | undefined>;
}

/** A writer. `now`: milliseconds since the epoch. */
export function writer(events: EventStore, now: () => number): Writer {
  return {
    async append(stream, { type, data }, expected, { commandId, cause, simulated }) {
      const event: NewEvent = {
        id: randomUUID(),
        type,
        at: new Date(now()).toISOString(),
        data,
        metadata: {
          commandId,
          causationId: cause.id,
          correlationId: cause.correlationId,
          by: { user: PROCESS_USER },
          ...(simulated === true ? { simulated } : {}),
        },
      };
      for (let repeat = 0; ; repeat++) {
        try {
          const { revision } = await events.append(stream, [event], expected);
          return { id: event.id, at: event.at, revision, correlationId: cause.correlationId };
        } catch (error) {
          if (error instanceof ConflictError) return undefined;
          if (!(error instanceof UnavailableError) || !error.outcomeUnknown || repeat === REPEATS_OF_UNKNOWN) throw error;
        }
      }
    },
  };
}
