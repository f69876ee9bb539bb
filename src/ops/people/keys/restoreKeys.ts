import type { KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { storedErasures, storeErasure } from '../erasure/erasureRecord.js';
import { type KeysBackup, rowsOfBackup } from './keysBackup.js';

const AT_ONCE = 1_000;

/** Numbers of the backup's rows, by what became of them. */
export interface RestoredKeys {
  /** Rows that are in the key store now. */
  readonly rows: number;
  /** Rows of persons who were erased since the backup: left out. */
  readonly erased: number;
  /** Rows for whose lookup the key store has another row: left out. */
  readonly others: number;
}

/**
 * Adds the missing rows and erasures of a checked backup, and leaves existing ones unchanged. Erasures are added first:
 * no row is restored without the erasure of its person. Repeating it is safe.
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
    // A row that was removed concurrently is absent from the result.
    if (removed.has(id) || now === undefined) return 'erased';
    return now.id === id ? 'rows' : 'others';
  });
}
