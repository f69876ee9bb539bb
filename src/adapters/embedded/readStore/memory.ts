/**
 * Documents that the thread that has opened the store remembers for as long as nothing is written to their collection.
 */
import { LRUCache } from 'lru-cache';
import type { StoredDocument } from '../../../ports/readStore.js';
import type { Layout } from './layout.js';

/** What is remembered of a store. */
export interface Memory {
  /** The document, where it is remembered. */
  known(layout: Layout, id: string): StoredDocument | undefined;
  /**
   * Remembers the document if it was asked for before. `since`: the `age` when it was asked for; what has been
   * forgotten since may be why it is outdated.
   */
  remember(layout: Layout, document: StoredDocument, since: number): void;
  /** Documents of a collection, `gifts@3`, have been written since: what is remembered of it may be outdated. */
  forget(collection: string): void;
  /** Rises whenever something is forgotten. */
  age(): number;
}

/**
 * Documents of one collection that are remembered as long as nothing is written to it: what many others are joined with
 * is asked for again and again. Only what was asked for lately is: a million gifts, each looked up once, would only
 * drive one another out.
 */
const REMEMBERED = 20_000;
/** So many ids, as their hashes, are known to have been asked for lately: a power of two. */
const ASKED = 65_536;
/**
 * So many collections are remembered, a quarter of a MB each at least: twice as many as there are read models. Each
 * build of one has a collection of its own, which readers leave for the next.
 */
const COLLECTIONS = 16;

/** What is remembered of one collection. */
interface Collection {
  readonly documents: LRUCache<string, StoredDocument>;
  /** The hash of the id that was asked for last, by the hash's last bits. */
  readonly asked: Int32Array;
}

/** A memory with nothing in it. */
export function createMemory(): Memory {
  const collections = new Map<Layout, Collection>();
  let forgotten = 0;

  function of(layout: Layout): Collection {
    const known = collections.get(layout);
    if (known !== undefined) return known;
    const [oldest] = collections.keys();
    if (oldest !== undefined && collections.size >= COLLECTIONS) collections.delete(oldest);
    const made = { documents: new LRUCache<string, StoredDocument>({ max: REMEMBERED }), asked: new Int32Array(ASKED) };
    collections.set(layout, made);
    return made;
  }

  return {
    known(layout, id) {
      const { documents, asked } = of(layout);
      const hash = hashOf(id);
      return asked[slotOf(hash)] === hash ? documents.get(id) : undefined;
    },
    remember(layout, document, since) {
      if (since !== forgotten) return;
      const { documents, asked } = of(layout);
      const hash = hashOf(document.id);
      const slot = slotOf(hash);
      if (asked[slot] === hash) documents.set(document.id, document);
      else asked[slot] = hash;
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
  return (hash >>> 1) & (ASKED - 1);
}
