/**
 * Collects what is answered under `embedded` (decisions 5): one list a kind, each entity once whatever leads to it, a
 * requested kind with nothing in it `[]`.
 */

/** The keys of `embedded`: the entity kinds in plural. */
export type EmbeddedKind =
  'gifts' | 'messages' | 'redemptions' | 'vouchers' | 'segments' | 'products' | 'brands' | 'stores' | 'integrations';

/** What stands under `embedded`. */
export type Embedded = Readonly<Partial<Record<EmbeddedKind, readonly object[]>>>;

/** The embedded entities of one answer. */
export interface EmbeddedCollector {
  /** The kind stands in the result even if nothing of it is found. */
  request(kind: EmbeddedKind): void;
  /** Adds an entity unless one of this kind and id is there already: only then is it made. */
  add(kind: EmbeddedKind, id: string, make: () => object): void;
  /** The lists, kinds in the order first named, entities in the order added. */
  result(): Embedded;
}

/** A collector with nothing in it. */
export function embeddedCollector(): EmbeddedCollector {
  const kinds = new Map<EmbeddedKind, Map<string, object>>();
  const kindOf = (kind: EmbeddedKind): Map<string, object> => {
    let entities = kinds.get(kind);
    if (entities === undefined) {
      entities = new Map();
      kinds.set(kind, entities);
    }
    return entities;
  };
  return {
    request(kind) {
      kindOf(kind);
    },
    add(kind, id, make) {
      const entities = kindOf(kind);
      if (!entities.has(id)) entities.set(id, make());
    },
    result() {
      const lists: Partial<Record<EmbeddedKind, readonly object[]>> = {};
      for (const [kind, entities] of kinds) lists[kind] = [...entities.values()];
      return lists;
    },
  };
}
