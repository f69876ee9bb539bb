/** Documents in memory, on the thread that opened the store, until their collection is written. */
import { LRUCache } from 'lru-cache';
import type { StoredDocument } from '../../../ports/readStore.js';
import type { Layout } from './layout.js';

export interface Memory {
  known(layout: Layout, id: string): StoredDocument | undefined;
  /**
   * Stores a document in memory.
   * @param since the `age` when the document was read: after a later `forget` it may be outdated and is not stored
   */
  remember(layout: Layout, document: StoredDocument, since: number): void;
  forget(collection: string): void;
  age(): number;
}

/**
 * Documents per collection, retained from their second look-up on. A million gifts looked up once must not drive out
 * those that are joined again and again.
 */
const REMEMBERED = 20_000;
/** Recently requested ids, by hash: a power of two. */
const SEEN_SLOTS = 65_536;
/**
 * Most collections in memory, a quarter of a MB each: twice the number of read models, since each build has its own.
 */
const COLLECTIONS = 16;

interface Collection {
  readonly documents: LRUCache<string, StoredDocument>;
  readonly seen: Int32Array;
}

export function createMemory(): Memory {
  const collections = new Map<Layout, Collection>();
  let forgotten = 0;

  function of(layout: Layout): Collection {
    const known = collections.get(layout);
    if (known !== undefined) return known;
    const [oldest] = collections.keys();
    if (oldest !== undefined && collections.size >= COLLECTIONS) collections.delete(oldest);
    const made = {
      documents: new LRUCache<string, StoredDocument>({ max: REMEMBERED }),
      seen: new Int32Array(SEEN_SLOTS),
    };
    collections.set(layout, made);
    return made;
  }

  return {
    known(layout, id) {
      const { documents, seen } = of(layout);
      const hash = hashOf(id);
      return seen[slotOf(hash)] === hash ? documents.get(id) : undefined;
    },
    remember(layout, document, since) {
      if (since !== forgotten) return;
      const { documents, seen } = of(layout);
      const hash = hashOf(document.id);
      const slot = slotOf(hash);
      if (seen[slot] === hash) documents.set(document.id, document);
      else seen[slot] = hash;
    },
    forget(collection) {
      forgotten++;
      for (const [{ name }, { documents }] of collections) if (name === collection) documents.clear();
    },
    age: () => forgotten,
  };
}

/** FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), never 0. */
function hashOf(id: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < id.length; at++) hash = Math.imul(hash ^ id.charCodeAt(at), 0x01000193);
  return hash | 1;
}

function slotOf(hash: number): number {
  return (hash >>> 1) & (SEEN_SLOTS - 1);
}
