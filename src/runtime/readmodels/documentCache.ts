/**
 * Documents stored lately, so that later events of them need no read. Of two generations the old one goes when the
 * young one is full.
 */
import type { StoredDocument } from '../../ports/readStore.js';

/** So many documents are added one by one; a larger map is taken over as it is, at once. */
const FEW = 1_000;

export interface DocumentCache {
  get(id: string): StoredDocument | undefined;
  /** Keeps these documents, in place of earlier states. The map is the cache's from then on. */
  keep(documents: Map<string, StoredDocument>): void;
  clear(): void;
}

/** A cache whose generations end at `generation` documents, or with what was kept at once. */
export function documentCache(generation: number): DocumentCache {
  let young = new Map<string, StoredDocument>();
  let old = new Map<string, StoredDocument>();
  return {
    get: (id) => young.get(id) ?? old.get(id),
    keep(documents) {
      if (documents.size > FEW || young.size + documents.size > generation) {
        old = young;
        young = documents;
      } else {
        for (const [id, document] of documents) young.set(id, document);
      }
    },
    clear() {
      young = new Map();
      old = new Map();
    },
  };
}
