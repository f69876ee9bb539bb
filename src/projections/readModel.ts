/** How queries and commands read a projection's documents, whatever its version and whichever process keeps it. */
import type { Position } from '../ports/eventStore.js';
import type { Body, Query } from '../ports/readStore.js';

/** A read model as its readers see it. Every method throws UnavailableError when the read store can't be reached. */
export interface ReadModel<B extends Body> {
  /** The projection's name. */
  readonly name: string;
  /**
   * The document, or `undefined` when there is none.
   * @throws UnavailableError also when it is missing while the projection has never caught up, and when the document is quarantined.
   */
  get(id: string): Promise<B | undefined>;
  /** The documents in the order of `ids`; throws as `get` does. */
  getMany(ids: readonly string[]): Promise<(B | undefined)[]>;
  /** The documents of a query, with their ids. @throws UnavailableError also while the projection has never caught up. */
  find(query: Query): Promise<{ readonly id: string; readonly body: B }[]>;
  /** How many documents match. @throws UnavailableError also while the projection has never caught up. */
  count(query: Query): Promise<number>;
  /** Waits until everything up to `position` is folded, at most `timeoutMs`. @returns whether it is. */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
}
