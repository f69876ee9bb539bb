/** Documents read or written lately, so that later events of them need no read. Two generations: when the young one is full, the old one is let go. */
import type { StoredDocument } from '../ports/readStore.js';

/** A bounded memory of documents by id. */
export interface DocumentCache {
  get(id: string): StoredDocument | undefined;
  /** Keeps a document, in place of an earlier state of it. */
  set(document: StoredDocument): void;
}

/** A cache that holds at most twice `generation` documents. */
export function documentCache(generation: number): DocumentCache {
  let young = new Map<string, StoredDocument>();
  let old = new Map<string, StoredDocument>();
  return {
    get: (id) => young.get(id) ?? old.get(id),
    set(document) {
      young.set(document.id, document);
      if (young.size < generation) return;
      old = young;
      young = new Map();
    },
  };
}
