/** Rows of key stores, and the fixture of their suite. */
import { randomBytes } from 'node:crypto';
import type { KeyStore, SubjectRow } from '../../../src/ports/keyStore.js';

/** What a process under load has said. */
export interface KeyStoreLoad {
  /** Rows that are acknowledged, and not to be removed. */
  readonly added: SubjectRow[];
  /** Rows whose removal is acknowledged. */
  readonly removed: SubjectRow[];
}

/** The process, opened and ready. */
export interface KeyStoreProcess extends Pick<
  KeyStore,
  'add' | 'byLookup' | 'fence' | 'putErasure' | 'remove' | 'rewrap' | 'unfence'
> {
  /** Starts to add and remove without end, `group` rows at a time. */
  load(group: number): KeyStoreLoad;
  /** Ends it at once (SIGKILL); resolves when everything it said has been heard. */
  kill(): Promise<void>;
}

/** A store to test, which no other test has. */
export interface KeyStoreFixture {
  readonly store: KeyStore;
  /** The same store again, once `store` is closed. */
  readonly reopen: () => Promise<KeyStore>;
  /** Another client of the same store, beside `store`. */
  readonly second: () => Promise<KeyStore>;
  /** A client in a process of its own. */
  readonly elsewhere: () => Promise<KeyStoreProcess>;
  /** Takes the engine away from its clients, and gives it back. */
  readonly engine: { readonly take: () => Promise<void>; readonly giveBack: () => Promise<void> };
  /** Which of these texts stand in the store's files; absent where the files are a server's. */
  readonly textsInFiles?: (texts: readonly string[]) => readonly string[];
  /** How many rows the largest case has; 10,000 when absent. */
  readonly many?: number;
  /** Closes and removes everything. */
  readonly destroy: () => Promise<void>;
}

/** 22 characters of base64url. */
export function newKey(): string {
  return randomBytes(16).toString('base64url');
}

/** A wrapped data key: a nonce, 32 bytes, a tag and the number of the master key. */
export function newSecret(bytes = 61): string {
  return randomBytes(bytes).toString('base64url');
}

/** A row that no other test has. */
export function newRow(changes: Partial<SubjectRow> = {}): SubjectRow {
  return { id: newKey(), lookup: newKey(), secret: newSecret(), ...changes };
}

/** So many new rows. */
export function newRows(count: number): SubjectRow[] {
  return Array.from({ length: count }, () => newRow());
}

/** What a store should find of these rows. */
export function mapBy(rows: readonly SubjectRow[], key: 'id' | 'lookup'): Map<string, SubjectRow> {
  return new Map(rows.map((row) => [row[key], row]));
}

/** All rows, by pages of `limit`. */
export async function allRows(store: Pick<KeyStore, 'page'>, limit: number): Promise<SubjectRow[]> {
  const rows: SubjectRow[] = [];
  for (let after: string | undefined; ;) {
    const page = await store.page(after, limit);
    rows.push(...page);
    if (page.length < limit) return rows;
    after = page.at(-1)?.id;
  }
}

/** Rows in the order of their ids. */
export function byId(rows: readonly SubjectRow[]): SubjectRow[] {
  return rows.toSorted((a, b) => (a.id < b.id ? -1 : 1));
}
