/** A projection: a fold of events into the documents of a read model (docs/design.md#read-models). */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, IndexSpec } from '../../ports/readStore.js';

export interface Projection<B extends Body = Body> {
  /** The collection's name too: lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when documents or fold change: docs/extending.md#changing-a-projection. */
  readonly version: number;
  /**
   * Folds of earlier versions that may be in use when this code is deployed: at least that of the last release, as it
   * was (docs/read-models.md#previous-folds).
   */
  readonly previous?: readonly Projection[];
  readonly indexes: readonly IndexSpec[];
  /** Fields, at any depth, whose values a verification masks in its report. */
  readonly hidden: ReadonlySet<string>;
  /**
   * Whether no event changes the document any more, so that readers may keep it in memory for as long as the read
   * model's edition. Absent: never.
   */
  isFinal?(document: B): boolean;
  /** The event types that it folds. */
  readonly types: readonly string[];
  /** Those of `types` for which `evolve` ignores what was there: their documents need not be read first. */
  readonly creates?: readonly string[];
  /** The documents that an event touches, in order; from the event alone: no look-ups. */
  documentIds(event: RecordedEvent): readonly string[];
  /**
   * The document after one more event: pure. `index` is its place in `documentIds(event)`. Never called for an event at
   * or below the document's position.
   */
  evolve(document: B | undefined, event: RecordedEvent, id: string, index: number): B;
}

/**
 * The event types of a fold: `typesOf<Folded['type']>({ GiftClaimed: true })` compiles only where none is missing or
 * unknown.
 */
export function typesOf<T extends string>(types: Readonly<Record<T, true>>): readonly T[] {
  return Object.keys(types) as T[];
}

/**
 * The documents that an event touches. @throws whatever the projection does; TypeError for what is no id, as where the
 * event lacks the field
 */
export function touchedBy(projection: Projection, event: RecordedEvent): readonly string[] {
  const ids = projection.documentIds(event);
  for (const id of ids)
    if (typeof id !== 'string' || id === '')
      throw new TypeError(`${event.type} names no document of ${projection.name}`);
  return ids;
}

export function collectionOf(projection: Pick<Projection, 'name' | 'version' | 'indexes'>): CollectionSpec {
  return { name: projection.name, version: projection.version, indexes: projection.indexes };
}

/** The name of a build's checkpoint: `gifts@1`. */
export function checkpointName(projection: Pick<Projection, 'name' | 'version'>): string {
  return `${projection.name}@${projection.version}`;
}
