/** The documents of a simulated read store: what survives crashes. Its methods work at once, each as a whole. */
import {
  collectionNameOf,
  conditionsOf,
  scalarOf,
  storedNameOf,
  versionsAmong,
} from '../../../src/adapters/readStoreRules.js';
import { storedBodyOf } from '../../../src/adapters/storedBody.js';
import type { Position } from '../../../src/ports/eventStore.js';
import type {
  ActivateOptions,
  Body,
  Checkpoint,
  CollectionSpec,
  Correction,
  Query,
  Scalar,
  StoredDocument,
  StoredText,
} from '../../../src/ports/readStore.js';
import { found } from '../../support/engines/plainQuery.js';

/** A document, encoded by its writer. */
export interface EncodedDocument {
  readonly id: string;
  readonly position: Position;
  readonly body: string;
}

/** A stored document. Tests damage its body, and what queries find it by. */
interface Row {
  readonly id: string;
  readonly position: Position;
  body: string;
  /** Values of the indexed fields. */
  readonly values: Map<string, Scalar>;
}

interface Collection {
  readonly rows: Map<string, Row>;
  readonly fields: Set<string>;
}

export interface Documents {
  ensure(collection: CollectionSpec): void;
  drop(collection: CollectionSpec): void;
  getMany<B extends Body>(collection: CollectionSpec, ids: readonly string[]): (StoredDocument<B> | undefined)[];
  /** @throws Error when the query names an undeclared field */
  find<B extends Body>(collection: CollectionSpec, query: Query): StoredDocument<B>[];
  misindexed(collection: CollectionSpec, ids: readonly string[]): string[];
  write(collection: CollectionSpec, documents: readonly EncodedDocument[]): void;
  correct(
    collection: CollectionSpec,
    correction: Omit<Correction, 'document'> & { document?: EncodedDocument },
  ): boolean;
  checkpoint(projection: string): Position | undefined;
  advance(checkpoint: Checkpoint): void;
  active(name: string): number | undefined;
  versions(name: string): number[];
  activate(name: string, version: number, options: ActivateOptions): boolean;
  deactivate(name: string, version: number): boolean;
  texts(): StoredText[];
  boundTo(logId: string): string;
  /** Calls `advanced` after each change of a checkpoint, until the returned function is called. */
  watch(advanced: () => void): () => void;
  /** Names of the projections that have a checkpoint. */
  checkpoints(): string[];
  /** Stores a checkpoint that no projection has written. */
  alterCheckpoint(projection: string, position: Position): void;
  /** Loses everything. */
  clear(): void;
  /** Copies everything. @returns puts it back, once, in the place of what is stored by then */
  copied(): () => void;
  /** The stored document, to be damaged by a test or a fault. */
  row(collection: CollectionSpec, id: string): Pick<Row, 'body' | 'values'> | undefined;
}

export function documents(): Documents {
  const collections = new Map<string, Collection>();
  const checkpoints = new Map<string, Position>();
  const pointers = new Map<string, number>();
  const watchers = new Set<() => void>();
  let bound: string | undefined;

  const rowsOf = (spec: CollectionSpec): ReadonlyMap<string, Row> =>
    collections.get(storedNameOf(spec))?.rows ?? new Map();

  function ensured(spec: CollectionSpec): Collection {
    collectionNameOf(spec);
    const name = storedNameOf(spec);
    const collection = collections.get(name) ?? { rows: new Map(), fields: new Set() };
    collections.set(name, collection);
    const added = spec.indexes.flatMap(({ fields }) => fields).filter((field) => !collection.fields.has(field));
    for (const field of added) collection.fields.add(field);
    if (added.length > 0)
      for (const row of collection.rows.values())
        for (const [field, value] of valuesOf(row.body, added)) row.values.set(field, value);
    return collection;
  }

  const newRow = (document: EncodedDocument, { fields }: Collection): Row => ({
    ...document,
    values: valuesOf(document.body, fields),
  });

  return {
    ensure: (spec) => void ensured(spec),
    drop(spec) {
      collections.delete(storedNameOf(spec));
      checkpoints.delete(collectionNameOf(spec));
    },
    getMany<B extends Body>(spec: CollectionSpec, ids: readonly string[]) {
      const rows = rowsOf(spec);
      return ids.map((id) => documentOf<B>(rows.get(id)));
    },
    find<B extends Body>(spec: CollectionSpec, query: Query) {
      conditionsOf(collectionNameOf(spec), spec.indexes, query);
      const fieldOf = (row: Row, field: string): Scalar => (field === 'id' ? row.id : (row.values.get(field) ?? null));
      return found([...rowsOf(spec).values()], query, fieldOf).map((row) => documentOf<B>(row) as StoredDocument<B>);
    },
    misindexed(spec, ids) {
      const rows = rowsOf(spec);
      return ids.filter((id) => {
        const row = rows.get(id);
        return (
          row !== undefined &&
          [...valuesOf(row.body, row.values.keys())].some(([field, value]) => row.values.get(field) !== value)
        );
      });
    },
    write(spec, written) {
      const collection = ensured(spec);
      for (const document of written) {
        const present = collection.rows.get(document.id);
        if (present === undefined || present.position < document.position)
          collection.rows.set(document.id, newRow(document, collection));
      }
    },
    correct(spec, { id, expected, document }) {
      const collection = ensured(spec);
      if (collection.rows.get(id)?.position !== expected) return false;
      if (document === undefined) collection.rows.delete(id);
      else collection.rows.set(id, newRow(document, collection));
      return true;
    },
    checkpoint: (projection) => checkpoints.get(projection),
    advance({ projection, position }) {
      if ((checkpoints.get(projection) ?? '') >= position) return;
      checkpoints.set(projection, position);
      for (const advanced of watchers) advanced();
    },
    active: (name) => pointers.get(name),
    versions: (name) => versionsAmong([...collections.keys()], name),
    activate(name, version, { expected }) {
      const present = pointers.get(name) ?? 0;
      if (expected !== undefined && present !== expected && present !== version) return false;
      pointers.set(name, version);
      return true;
    },
    deactivate(name, version) {
      if (pointers.get(name) === version) pointers.delete(name);
      return !pointers.has(name);
    },
    texts: () =>
      [...collections].flatMap(([name, { rows }]) =>
        [...rows.values()].map(({ id, body, position }) => ({
          place: `${name} ${id}`,
          text: `${id}\n${body}\n${position}`,
        })),
      ),
    boundTo: (logId) => (bound ??= logId),
    watch(advanced) {
      watchers.add(advanced);
      return () => void watchers.delete(advanced);
    },
    checkpoints: () => [...checkpoints.keys()],
    alterCheckpoint: (projection, position) => void checkpoints.set(projection, position),
    clear() {
      for (const map of [collections, checkpoints, pointers]) map.clear();
      bound = undefined;
    },
    copied() {
      const copies = {
        collections: [...collections].map(
          ([name, { rows, fields }]) => [name, { rows: new Map(rows), fields: new Set(fields) }] as const,
        ),
        checkpoints: [...checkpoints],
        pointers: [...pointers],
        bound,
      };
      return () => {
        refill(collections, copies.collections);
        refill(checkpoints, copies.checkpoints);
        refill(pointers, copies.pointers);
        ({ bound } = copies);
      };
    },
    row: (spec, id) => rowsOf(spec).get(id),
  };
}

function refill<K, V>(map: Map<K, V>, entries: readonly (readonly [K, V])[]): void {
  map.clear();
  for (const [key, value] of entries) map.set(key, value);
}

function documentOf<B extends Body>(row: Row | undefined): StoredDocument<B> | undefined {
  return row && { id: row.id, position: row.position, body: storedBodyOf(row.body) as B };
}

function valuesOf(body: string, fields: Iterable<string>): Map<string, Scalar> {
  const parsed = storedBodyOf(body) as Readonly<Record<string, unknown>>;
  return new Map([...fields].map((field) => [field, scalarOf(parsed[field])]));
}
