/**
 * Recently stored documents, so that later events need no read. When the young generation is full it becomes the old
 * one, which is dropped.
 */
import type { StoredDocument } from '../../ports/readStore.js';

/** A larger map replaces the young generation without a copy. */
const FEW = 1_000;

export interface DocumentCache {
  get(id: string): StoredDocument | undefined;
  /** The cache takes over the map. */
  keep(documents: Map<string, StoredDocument>): void;
  clear(): void;
}

/** @param generation documents in one generation */
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
