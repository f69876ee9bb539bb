/**
 * What a read model is: a fold of events into documents (`design`: projections name documents, the projector runs
 * them).
 */
import type { RecordedEvent } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, IndexSpec } from '../../ports/readStore.js';

/** One read model. */
export interface Projection<B extends Body = Body> {
  /** The collection's name too: lower-case letters, digits and `_`. */
  readonly name: string;
  /** Raised when documents or fold change: a new version is built beside the old one and swapped in. */
  readonly version: number;
  /**
   * The folds of earlier versions that an installation may still serve when this code is deployed: at least that of the
   * last release, as it was. With it what serves is kept up to date until this version is built, and some time longer,
   * so that the last release can be brought back without a gap.
   */
  readonly previous?: readonly Projection[];
  readonly indexes: readonly IndexSpec[];
  /** Names of fields, at any depth of its documents, whose values a verification masks in what it reports. */
  readonly hidden: ReadonlySet<string>;
  /**
   * Whether no event changes the document any more, so that readers may keep it in memory. Repairs and other builds
   * they hear of by the read model's edition. Absent: no document is final.
   */
  isFinal?(document: B): boolean;
  /** The event types it folds; others never reach it. */
  readonly types: readonly string[];
  /**
   * Those of `types` for which `evolve` ignores what was there: their documents need not be read first. Absent: none.
   */
  readonly creates?: readonly string[];
  /** The documents that an event touches, in order; may be none. The event itself decides: no look-ups. */
  documentIds(event: RecordedEvent): readonly string[];
  /**
   * The document after one more event: pure. `index` is the document's place in `documentIds(event)`. Never called for
   * an event at or below the document's position.
   */
  evolve(document: B | undefined, event: RecordedEvent, id: string, index: number): B;
}

/**
 * The event types of a fold, held against what its events may be: one that is missing here, so that it would never be
 * folded, or that the fold does not know, does not compile. `typesOf<Folded['type']>({ GiftClaimed: true })`.
 */
export function typesOf<T extends string>(types: Readonly<Record<T, true>>): readonly T[] {
  return Object.keys(types) as T[];
}

/**
 * The documents that an event touches. @throws whatever the projection does; TypeError where what it names is no id, as
 * with an event that lacks the field
 */
export function touchedBy(projection: Projection, event: RecordedEvent): readonly string[] {
  const ids = projection.documentIds(event);
  for (const id of ids)
    if (typeof id !== 'string' || id === '')
      throw new TypeError(`${event.type} names no document of ${projection.name}`);
  return ids;
}

/** The collection of a projection. */
export function collectionOf(projection: Pick<Projection, 'name' | 'version' | 'indexes'>): CollectionSpec {
  return { name: projection.name, version: projection.version, indexes: projection.indexes };
}

/** The name under which a projection keeps its checkpoint: `gifts@1`. */
export function checkpointName(projection: Pick<Projection, 'name' | 'version'>): string {
  return `${projection.name}@${projection.version}`;
}
