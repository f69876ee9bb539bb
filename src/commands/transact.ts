/** The command loop: reads a stream, decides, appends at the revision read; after a conflict it starts over. */
import { copyWith } from '../lib/copyWith.js';
import { type Aggregate, type DomainEvent, fold } from '../domain/decider.js';
import { kindOf } from '../domain/streamName.js';
import { randomUUID } from '../lib/world.js';
import {
  ConflictError,
  type EventStore,
  type ExpectedRevision,
  type NewEvent,
  type RecordedEvent,
  type Caller,
  type EventMetadata,
} from '../ports/eventStore.js';
import { UnavailableError, withUnknownOutcome } from '../ports/unavailable.js';
import { inSpan } from '../tracing/spans.js';
import { Refusal } from '../domain/refusal.js';
import { schemaNote, type Upcasters } from '../domain/upcasters.js';

export interface CommandContext {
  /** Id of the command, the same for every repetition. */
  readonly commandId: string;
  /** SHA-256 of the canonical body, for a command with an idempotency key. */
  readonly bodyHash?: string;
  readonly correlationId: string;
  readonly causationId?: string;
  readonly requestId?: string;
  readonly by: Caller;
  /** A simulated provider answered. */
  readonly simulated?: true;
  /** Time of the decision (ISO 8601, UTC, milliseconds). */
  readonly now: string;
}

/** Number of attempts on a stream: a command fails once it lost so many races, in each of which another command won. */
export const ATTEMPTS = 32;
const REPEATS_OF_UNKNOWN = 2;

export interface StreamState<S> {
  readonly stream: string;
  readonly state: S;
  /** The events that are searched for those of an earlier run of the command. */
  readonly history: readonly RecordedEvent[];
  readonly revision: Exclude<ExpectedRevision, 'any'>;
}

export interface Source<S> {
  readonly kind: string;
  /** Called again after each conflict. */
  readonly read: () => Promise<StreamState<S>>;
}

export interface Transacted<S = unknown> {
  /** The command's own events: appended now (all with the position of the last), or (`replayed`) by an earlier run. */
  readonly own: readonly RecordedEvent[];
  /** The events that were read, followed by the command's own ones. */
  readonly history: readonly RecordedEvent[];
  readonly replayed: boolean;
  /** The state on which the decision was made; for a replayed command the present state. */
  readonly state: S;
}

/** The history up to the command's own events, so that every repetition of the command gets the same answer. */
export function upToOwn({ own, history }: Pick<Transacted, 'own' | 'history'>): readonly RecordedEvent[] {
  const last = own.at(-1);
  return last === undefined ? history : history.slice(0, last.revision + 1);
}

/**
 * `decide` returns the events to append (none: already done) or throws Refusal; it is called again after a conflict.
 * `known`: the stream as just read, in place of the first read.
 * @throws Refusal, UnavailableError; ConflictError after `ATTEMPTS` lost races
 */
export async function transact<S, E extends DomainEvent>(
  events: EventStore,
  aggregate: Aggregate<S, E>,
  stream: string,
  context: CommandContext,
  decide: (state: S, history: readonly RecordedEvent[]) => readonly DomainEvent[] | Promise<readonly DomainEvent[]>,
  known?: readonly RecordedEvent[],
): Promise<Transacted<S>> {
  return transactOn(events, streamSource(events, aggregate, stream, known), context, decide);
}

/** `known`: the stream as just read, in place of the first read. */
export function streamSource<S, E extends DomainEvent>(
  events: Pick<EventStore, 'read'>,
  aggregate: Aggregate<S, E>,
  stream: string,
  known?: readonly RecordedEvent[],
): Source<S> {
  let first = known;
  const read = async (): Promise<StreamState<S>> => {
    const history = first ?? (await events.read(stream));
    first = undefined;
    return { stream, history, state: fold(aggregate, history), revision: history.at(-1)?.revision ?? 'none' };
  };
  return { kind: kindOf(stream), read };
}

/** As `transact`, for a state that is not the fold of one whole stream. */
export async function transactOn<S>(
  events: EventStore,
  { kind, read }: Source<S>,
  context: CommandContext,
  decide: (state: S, history: readonly RecordedEvent[]) => readonly DomainEvent[] | Promise<readonly DomainEvent[]>,
): Promise<Transacted<S>> {
  // All commands without an id would be one, whose first outcome answers the rest.
  if (context.commandId === '') throw new Error(`a command on a ${kind} has no id`);
  return inSpan(
    () => ({ name: `command ${kind}` }),
    async (span) => {
      for (let attempt = 1; ; attempt++) {
        const { stream, state, history, revision } = await read();
        const earlier = ownEvents(history, context);
        const decided = earlier.length > 0 ? [] : await decide(state, history);
        try {
          const own =
            decided.length === 0 ? earlier : await append(events, stream, recordable(decided, context), revision);
          const replayed = earlier.length > 0;
          span.set({ 'gift.event.types': own.map(({ type }) => type).join(' '), 'gift.replayed': replayed });
          return { own, history: replayed ? history : [...history, ...own], replayed, state };
        } catch (error) {
          if (!(error instanceof ConflictError) || attempt === ATTEMPTS) throw error;
        }
      }
    },
  );
}

/**
 * Appends one event with a command id of its own, which is also its correlation id unless another is given.
 * @throws ConflictError, UnavailableError
 */
export async function appendEvent(
  events: EventStore,
  stream: string,
  event: DomainEvent,
  expected: ExpectedRevision,
  context: Pick<CommandContext, 'by' | 'now'> & Partial<Pick<CommandContext, 'correlationId' | 'requestId'>>,
): Promise<RecordedEvent> {
  const commandId = randomUUID();
  const made = recordable([event], { correlationId: commandId, ...context, commandId });
  const [appended] = await append(events, stream, made, expected);
  return appended as RecordedEvent;
}

/**
 * While the outcome is unknown, the append is repeated with the same event ids, which stores no event twice. An outcome
 * that one try left unknown stays unknown.
 * @returns the events, all with the position of the last
 * @throws ConflictError, UnavailableError
 */
export async function append(
  events: EventStore,
  stream: string,
  decided: readonly NewEvent[],
  expected: ExpectedRevision,
): Promise<RecordedEvent[]> {
  let unknown = false;
  for (let repeat = 0; ; repeat++) {
    try {
      const { revision, position } = await events.append(stream, decided, expected);
      const first = revision - decided.length + 1;
      return decided.map((event, index) => copyWith(event, { stream, revision: first + index, position }));
    } catch (error) {
      if (!(error instanceof UnavailableError)) throw error;
      unknown ||= error.outcomeUnknown;
      if (unknown && repeat < REPEATS_OF_UNKNOWN) continue;
      throw unknown ? withUnknownOutcome(error) : error;
    }
  }
}

/** Events ready to append; `upcasters` determine their versions, by default those of this release. */
export function recordable(events: readonly DomainEvent[], context: CommandContext, upcasters?: Upcasters): NewEvent[] {
  const metadata: EventMetadata = {
    commandId: context.commandId,
    ...(context.bodyHash === undefined ? {} : { bodyHash: context.bodyHash }),
    correlationId: context.correlationId,
    ...(context.causationId === undefined ? {} : { causationId: context.causationId }),
    ...(context.requestId === undefined ? {} : { requestId: context.requestId }),
    by: context.by,
    ...(context.simulated === undefined ? {} : { simulated: context.simulated }),
  };
  return events.map(({ type, data }) => {
    const note = schemaNote(type, upcasters);
    return {
      id: randomUUID(),
      type,
      at: context.now,
      data,
      metadata: note.schema === undefined ? metadata : { ...metadata, ...note },
    };
  });
}

/**
 * The events of an earlier run of this command.
 * @throws Refusal `idempotency_key_reused` where that run had another body
 */
export function ownEvents(
  history: readonly RecordedEvent[],
  context: Pick<CommandContext, 'commandId' | 'bodyHash'>,
): RecordedEvent[] {
  const own = history.filter((event) => event.metadata.commandId === context.commandId);
  if (own.some((event) => event.metadata.bodyHash !== context.bodyHash)) throw new Refusal('idempotency_key_reused');
  return own;
}

/**
 * Context of a part of a larger command. A repeat is recognised by the state of its stream, not by the command's id.
 */
export function partOf(context: CommandContext): CommandContext {
  const { bodyHash: _, ...part } = context;
  return { ...part, commandId: randomUUID() };
}
