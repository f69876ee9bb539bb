/** The entities under `embedded` (docs/api/conventions.md#embedding): a list for each kind, each entity once. */

export type EmbeddedKind =
  'gifts' | 'messages' | 'redemptions' | 'vouchers' | 'segments' | 'products' | 'brands' | 'stores' | 'integrations';

export type Embedded = Readonly<Partial<Record<EmbeddedKind, readonly object[]>>>;

export interface EmbeddedCollector {
  /** Requests a kind of entities; a requested kind without entities is `[]` in the result. */
  request(kind: EmbeddedKind): void;
  /** Calls `make` only for a new entity. */
  add(kind: EmbeddedKind, id: string, make: () => object): void;
  /** Kinds in the order of their first mention, entities in the order of `add`. */
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
