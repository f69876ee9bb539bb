/** A fold of events into the documents of a read model (docs/design.md#read-models). */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, IndexSpec } from '../../ports/readStore.js';

export interface Projection<B extends Body = Body> {
  /** Also the collection's name: lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when documents or fold change: docs/extending.md#changing-a-projection. */
  readonly version: number;
  /**
   * Folds of earlier versions that may be in use at deployment, unchanged: at least the last release's
   * (docs/read-models.md#previous-folds).
   */
  readonly previous?: readonly Projection[];
  readonly indexes: readonly IndexSpec[];
  /**
   * Set for a large projection, so that readers of the others do not wait for it. It catches up after the others, and
   * then is folded every tenth of a second.
   */
  readonly last?: true;
  /** Its documents hold personal data in the clear. */
  readonly personal?: true;
  /** Fields, at any depth, that a verification masks in its report. */
  readonly hidden: ReadonlySet<string>;
  /**
   * Whether no event changes the document any more: readers retain it in memory for the read model's edition, the fold
   * does not. Absent: no document is final.
   */
  isFinal?(document: B): boolean;
  readonly types: readonly string[];
  /** Types of events whose `evolve` ignores the present document, so that it need not be read. */
  readonly creates?: readonly string[];
  /** Ids of the documents that an event touches, derived from the event only. */
  documentIds(event: RecordedEvent): readonly string[];
  /**
   * Documents of this projection that `evolve` reads to fold the event, without changing them. After a crash one may
   * include later events already, so what it says of the past must never change. Absent: none.
   */
  contextIds?(event: RecordedEvent): readonly string[];
  /**
   * Pure fold of one event into one document. `index` is the document's position in `documentIds(event)`. Never called
   * for an event at or below the document's position.
   * @param context in the order of `contextIds(event)`
   */
  evolve(
    document: B | undefined,
    event: RecordedEvent,
    id: string,
    index: number,
    context?: readonly (B | undefined)[],
  ): B;
}

/** `typesOf<Folded['type']>({ GiftClaimed: true })` compiles only with every type, and no other. */
export function typesOf<T extends string>(types: Readonly<Record<T, true>>): readonly T[] {
  return Object.keys(types) as T[];
}

/** Ids of the documents that an event touches. @throws any error of `documentIds`; TypeError for an invalid id */
export function touchedBy(projection: Projection, event: RecordedEvent): readonly string[] {
  return named(projection, event, projection.documentIds(event));
}

const NO_CONTEXT: readonly never[] = [];

/** Ids of the documents that `evolve` reads besides those. @throws as `touchedBy` */
export function contextOf(projection: Projection, event: RecordedEvent): readonly string[] {
  return projection.contextIds === undefined ? NO_CONTEXT : named(projection, event, projection.contextIds(event));
}

function named(projection: Projection, event: RecordedEvent, ids: readonly string[]): readonly string[] {
  for (const id of ids)
    if (typeof id !== 'string' || id === '')
      throw new TypeError(`${event.type} names no document of ${projection.name}`);
  return ids;
}

export function collectionOf({
  name,
  version,
  indexes,
  personal,
}: Pick<Projection, 'name' | 'version' | 'indexes' | 'personal'>): CollectionSpec {
  return { name, version, indexes, ...(personal === undefined ? {} : { personal }) };
}

export function checkpointName(projection: Pick<Projection, 'name' | 'version'>): string {
  return `${projection.name}@${projection.version}`;
}
