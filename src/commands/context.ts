/** Who gives a command, when and why: the metadata of what it appends. */
import { randomUUID } from 'node:crypto';
import type { DomainEvent } from '../domain/decider.js';
import type { Caller, EventMetadata, NewEvent, RecordedEvent } from '../ports/eventStore.js';
import { Refusal } from '../domain/refusal.js';
import { schemaNote, type Upcasters } from '../domain/upcasters.js';

export interface CommandContext {
  /** The same for every repetition of the command. */
  readonly commandId: string;
  /** SHA-256 of the canonical body, where the command came with an idempotency key. */
  readonly bodyHash?: string;
  readonly correlationId: string;
  readonly causationId?: string;
  readonly requestId?: string;
  readonly by: Caller;
  /** What is recorded came from a simulated provider. */
  readonly simulated?: true;
  /** The time of the decision: ISO 8601, UTC, milliseconds. */
  readonly now: string;
}

/** Decided events as events to append, each with its version. `upcasters`: default those of this release. */
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
 * The events that an earlier run of this command appended to a stream.
 * @throws Refusal `idempotency_key_reused` when they came from another body under the same key
 */
export function ownEvents(
  history: readonly RecordedEvent[],
  context: Pick<CommandContext, 'commandId' | 'bodyHash'>,
): RecordedEvent[] {
  const own = history.filter((event) => event.metadata.commandId === context.commandId);
  if (own.some((event) => event.metadata.bodyHash !== context.bodyHash)) throw new Refusal('idempotency_key_reused');
  return own;
}
