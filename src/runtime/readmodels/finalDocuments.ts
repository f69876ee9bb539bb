/** Documents that no event changes any more, held in the reader's memory. */
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';
import type { Body } from '../../ports/readStore.js';

/** Most documents in memory; they take some MB. */
const KEPT = 5_000;

interface FinalDocuments<B extends Body> {
  /** `undefined`: the document is not in memory, or is of another edition. */
  get(id: string, edition: string): B | undefined;
  /** Retains a final document, and ignores others. `edition`: the read model's edition before the read. */
  keep(id: string, document: B, edition: string): void;
}

export function finalDocuments<B extends Body>(isFinal: (document: B) => boolean): FinalDocuments<B> {
  const kept = new LRUCache<string, B>(atMost(KEPT));
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
