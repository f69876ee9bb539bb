import type { KeyStore, SubjectRow } from '../../ports/keyStore.js';
import { storedErasures, storeErasure } from '../people/erasure/erasureRecord.js';
import { type KeysBackup, rowsOfBackup } from './keysBackup.js';

const AT_ONCE = 1_000;

/** Rows of the backup by what became of them. */
export interface RestoredKeys {
  /** Those that are in the key store. */
  readonly rows: number;
  /** Of persons who were erased since: left out. */
  readonly erased: number;
  /** The key store has another row in their place: left out. */
  readonly others: number;
}

/**
 * Adds what is not there of a checked backup, and leaves what stands. Erasures first: no row comes back without the
 * erasure of its person. Repeating it is safe.
 * @throws BackupDamagedError where the file has changed since the check; UnavailableError, the signal's reason
 */
export async function restoreKeys(
  store: Pick<KeyStore, 'add' | 'removed' | 'erasures' | 'putErasure'>,
  { path, backup }: { readonly path: string; readonly backup: KeysBackup },
  signal: AbortSignal,
): Promise<RestoredKeys> {
  const present = new Set<string>();
  for await (const { id } of storedErasures(store)) present.add(id);
  for (const erasure of backup.erasures) {
    signal.throwIfAborted();
    if (!present.has(erasure.id)) await storeErasure(store, erasure);
  }
  const restored = { rows: 0, erased: 0, others: 0 };
  for await (const rows of rowsOfBackup(path, backup, AT_ONCE)) {
    signal.throwIfAborted();
    for (const fate of await addRows(store, rows)) restored[fate] += 1;
  }
  return restored;
}

async function addRows(
  store: Pick<KeyStore, 'add' | 'removed'>,
  rows: readonly SubjectRow[],
): Promise<(keyof RestoredKeys)[]> {
  const removed = await store.removed(rows.map(({ id }) => id));
  const present = await store.add(rows.filter(({ id }) => !removed.has(id)));
  return rows.map(({ id, lookup }) => {
    const now = present.get(lookup);
    // What was removed just now is absent.
    if (removed.has(id) || now === undefined) return 'erased';
    return now.id === id ? 'rows' : 'others';
  });
}
