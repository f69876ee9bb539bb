/** How process managers append: with the first event's correlation, the trigger as the cause, and the same ids where an outcome is unknown. */
import { recordable } from '../commands/context.js';
import type { DomainEvent } from '../domain/decider.js';
import { ConflictError, type EventStore, type ExpectedRevision } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import type { Seen } from './seen.js';

/** Who the process managers' events are by. */
const PROCESS_USER = 'system:purchase-process';

const REPEATS_OF_UNKNOWN = 3;

/** The command of a gift's issue, where nothing else is appended with it. */
export const issueCommand = (giftId: string): string => `issue-${giftId}`;

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
   * Appends one event, or several at once. @returns the last one as seen, or `undefined` when the stream is not at the expected revision.
   * @throws UnavailableError; with `outcomeUnknown` they may stand there.
   */
  append(stream: string, events: DomainEvent | readonly [DomainEvent, ...DomainEvent[]], expected: ExpectedRevision, reason: Reason): Promise<Seen | undefined>;
}

/** A writer. `now`: milliseconds since the epoch. */
export function writer(events: EventStore, now: () => number): Writer {
  return {
    async append(stream, decided, expected, { commandId, cause, simulated }) {
      const at = new Date(now()).toISOString();
      const context = { commandId, causationId: cause.id, correlationId: cause.correlationId, by: { user: PROCESS_USER }, ...(simulated === true ? { simulated } : {}), now: at };
      const appended = recordable('type' in decided ? [decided] : decided, context);
      const id = appended.at(-1)?.id ?? '';
      for (let repeat = 0; ; repeat++) {
        try {
          const { revision } = await events.append(stream, appended, expected);
          return { id, at, revision, correlationId: cause.correlationId };
        } catch (error) {
          if (error instanceof ConflictError) return undefined;
          if (!(error instanceof UnavailableError) || !error.outcomeUnknown || repeat === REPEATS_OF_UNKNOWN) throw error;
        }
      }
    },
  };
}
