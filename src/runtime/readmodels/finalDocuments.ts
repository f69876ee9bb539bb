/** Documents that no event changes any more, kept in memory by those who read them. */
import { LRUCache } from 'lru-cache';
import type { Body } from '../../ports/readStore.js';

/** Documents that are kept at most: some MB. */
const KEPT = 5_000;

export interface FinalDocuments<B extends Body> {
  /** The document; `undefined` where it is not kept, or was kept of another edition. */
  get(id: string, edition: string): B | undefined;
  /** Keeps it where it is final. `edition`: that of the read model when it was read. */
  keep(id: string, document: B, edition: string): void;
}

/** Keeps what `isFinal` says of. */
export function finalDocuments<B extends Body>(isFinal: (document: B) => boolean): FinalDocuments<B> {
  const kept = new LRUCache<string, B>({ max: KEPT });
  let of = '';
  return {
    get: (id, edition) => (edition === of ? kept.get(id) : undefined),
    keep(id, document, edition) {
      if (!isFinal(document)) return;
      if (edition !== of) kept.clear();
      of = edition;
      kept.set(id, document);
    },
  };
}
