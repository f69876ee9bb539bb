/**
 * The command loop: read, decide, append at the revision read; on a conflict all of it again, a bounded number of
 * times.
 */
import { copyWith } from '../domain/copyWith.js';
import type { DomainEvent } from '../domain/decider.js';
import {
  ConflictError,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type RecordedEvent,
} from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { kindOf } from '../domain/streamName.js';
import { inSpan, tracingOn } from '../tracing/spans.js';
import { type CommandContext, ownEvents, recordable } from './context.js';

/** Contenders for one stream give up after so many lost races; each loss means that another one won. */
const ATTEMPTS = 16;
const REPEATS_OF_UNKNOWN = 2;

/** What a command brought about. */
export interface Handled {
  /**
   * The command's own events, as they stand in the stream: appended now (then all with the position of the last of
   * them), or (`replayed`) by an earlier run. Empty: nothing was to be done.
   */
  readonly own: readonly RecordedEvent[];
  /** The whole stream, own events included. */
  readonly history: readonly RecordedEvent[];
  readonly replayed: boolean;
}

/**
 * The stream up to what the command brought about: an answer made of it is the same when it is repeated later, whatever
 * has happened since.
 */
export function upToOwn({ own, history }: Handled): readonly RecordedEvent[] {
  const last = own.at(-1);
  return last === undefined ? history : history.slice(0, last.revision + 1);
}

/**
 * Runs a command on one stream. `decide` gets the stream's events and gives those to append (none: already done); it
 * may be called again after a conflict, and throws Refusal to refuse. `known`: the stream as read just before, spares
 * the first read.
 * @throws Refusal, UnavailableError; ConflictError after 16 lost races.
 */
export async function handle(
  events: EventStore,
  stream: string,
  context: CommandContext,
  decide: (history: readonly RecordedEvent[]) => readonly DomainEvent[] | Promise<readonly DomainEvent[]>,
  known?: readonly RecordedEvent[],
): Promise<Handled> {
  if (!tracingOn()) return handleUntraced(events, stream, context, decide, known);
  return inSpan(
    () => ({ name: `command ${kindOf(stream)}` }),
    async (span) => {
      const handled = await handleUntraced(events, stream, context, decide, known);
      span.set({
        'gift.event.types': handled.own.map(({ type }) => type).join(' '),
        'gift.replayed': handled.replayed,
      });
      return handled;
    },
  );
}

async function handleUntraced(
  ...[events, stream, context, decide, known]: Parameters<typeof handle>
): Promise<Handled> {
  for (let attempt = 1; ; attempt++) {
    const history = attempt === 1 && known !== undefined ? known : await events.read(stream);
    const earlier = ownEvents(history, context);
    if (earlier.length > 0) return { own: earlier, history, replayed: true };
    const decided = recordable(await decide(history), context);
    if (decided.length === 0) return { own: [], history, replayed: false };
    try {
      const own = await append(events, stream, decided, history.at(-1)?.revision ?? 'none');
      return { own, history: [...history, ...own], replayed: false };
    } catch (error) {
      if (!(error instanceof ConflictError) || attempt === ATTEMPTS) throw error;
    }
  }
}

/**
 * Appends, for a command that has read and decided by itself; where the outcome is unknown, the same ids again: that is
 * safe and brings the answer.
 * @returns the events, all with the position of the last.
 * @throws ConflictError, UnavailableError
 */
export async function append(
  events: EventStore,
  stream: string,
  decided: readonly NewEvent[],
  expected: ExpectedRevision,
): Promise<RecordedEvent[]> {
  for (let repeat = 0; ; repeat++) {
    try {
      const { revision, position } = await events.append(stream, decided, expected);
      const first = revision - decided.length + 1;
      return decided.map((event, index) => copyWith(event, { stream, revision: first + index, position }));
    } catch (error) {
      if (!(error instanceof UnavailableError) || !error.outcomeUnknown || repeat === REPEATS_OF_UNKNOWN) throw error;
    }
  }
}
