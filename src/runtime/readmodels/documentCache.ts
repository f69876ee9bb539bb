/**
 * Recently stored documents that events may still change, so that these need no read. When the young generation is full
 * it becomes the old one, which is dropped.
 */
import type { Body, StoredDocument } from '../../ports/readStore.js';
import { isOutOfService } from './quarantine.js';

/** Number of documents above which a map replaces the young generation without a copy. */
const FEW = 1_000;

export interface DocumentCache {
  get(id: string): StoredDocument | undefined;
  /** Adds stored documents to the cache, which takes over the map. */
  keep(documents: Map<string, StoredDocument>): void;
  clear(): void;
}

/** @param generation documents in one generation */
export function documentCache(generation: number, isFinal?: (document: Body) => boolean): DocumentCache {
  let young = new Map<string, StoredDocument>();
  let old = new Map<string, StoredDocument>();

  /** Leaves out documents that are final by now, and removes their outdated states from the cache. */
  function changeable(stored: Map<string, StoredDocument>): Map<string, StoredDocument> {
    if (isFinal === undefined) return stored;
    const kept = new Map<string, StoredDocument>();
    for (const [id, document] of stored)
      if (isOutOfService(document.body) || !isFinal(document.body)) kept.set(id, document);
      else {
        young.delete(id);
        old.delete(id);
      }
    return kept;
  }

  return {
    get: (id) => young.get(id) ?? old.get(id),
    keep(stored) {
      const documents = changeable(stored);
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
