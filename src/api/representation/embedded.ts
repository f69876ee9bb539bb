/**
 * Collects the entities under `embedded` (docs/decisions.md#embedding): a list for each kind, each entity once, `[]`
 * for a requested kind without entities.
 */

export type EmbeddedKind =
  'gifts' | 'messages' | 'redemptions' | 'vouchers' | 'segments' | 'products' | 'brands' | 'stores' | 'integrations';

export type Embedded = Readonly<Partial<Record<EmbeddedKind, readonly object[]>>>;

export interface EmbeddedCollector {
  /** The kind is in the result even without entities. */
  request(kind: EmbeddedKind): void;
  /** Adds an entity unless one of this kind and id is there; only then is it made. */
  add(kind: EmbeddedKind, id: string, make: () => object): void;
  /** Kinds in the order first named, entities in the order added. */
  result(): Embedded;
}

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
