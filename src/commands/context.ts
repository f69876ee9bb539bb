import type { DomainEvent } from '../domain/decider.js';
import { randomUUID } from '../lib/world.js';
import type { Caller, EventMetadata, NewEvent, RecordedEvent } from '../ports/eventStore.js';
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
