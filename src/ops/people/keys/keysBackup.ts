/**
 * A backup of the key store: a file of JSON lines. The first is a header, then one row a line, `[id, lookup, secret]`,
 * and one erasure a line, an object. The last holds the count of rows and the SHA-256 of everything before it. So a
 * file that was cut or altered anywhere is detected. Secrets stay wrapped under MASTER_KEY.
 */
import { createHash } from 'node:crypto';
import { pages } from '../../../lib/async/pages.js';
import { FORMAT_MARK } from '../../../ports/dataFormat.js';
import type { KeyStore, SubjectRow } from '../../../ports/keyStore.js';
import { BackupDamagedError, type HeaderMark, linesOf, parsed, refuseFormat } from '../../backup/backupLines.js';
import { writeDraft } from '../../backup/draftFile.js';
import { type Erasure, storedErasures, storeErasure, unfinished } from '../erasure/erasureRecord.js';
import { AlteredDataError, type MasterKeys } from '../../../runtime/personal/index.js';

const AT_ONCE = 1_000;

type Row = readonly [id: string, lookup: string, secret: string];

/** Number of rows in a checked backup, and its erasures. */
interface KeysBackup {
  readonly rows: number;
  readonly erasures: readonly Erasure[];
}

/**
 * Writes every row and erasure into a new file, see `writeDraft`. @returns how many rows
 * @throws BackupExistsError, UnavailableError, the file system's errors, the signal's reason
 */
export async function backupKeys(
  store: Pick<KeyStore, 'page' | 'erasures'>,
  path: string,
  { takenAt, signal }: { readonly takenAt: string; readonly signal: AbortSignal },
): Promise<number> {
  let rows = 0;
  return writeDraft(
    path,
    async (file) => {
      const hash = createHash('sha256');
      const write = async (lines: readonly object[]): Promise<void> => {
        signal.throwIfAborted();
        const text = lines.map((line) => `${JSON.stringify(line)}\n`).join('');
        hash.update(text);
        await file.appendFile(text);
      };
      await write([{ gift_keys: FORMAT_MARK.format, version: FORMAT_MARK.version, taken_at: takenAt }]);
      const done = await doneErasures(store);
      for await (const page of pages<SubjectRow>(AT_ONCE, async (last) => store.page(last?.id, AT_ONCE))) {
        rows += page.length;
        await write(page.map(({ id, lookup, secret }): Row => [id, lookup, secret]));
      }
      // An erasure that was not done before the rows were read may have its rows among them. It is stored as
      // unfinished, so that it is finished where the rows are restored.
      for await (const erasure of storedErasures(store))
        await write([done.has(erasure.id) ? erasure : unfinished(erasure)]);
      await file.appendFile(`${JSON.stringify({ rows, sha256: hash.digest('hex') })}\n`);
      await file.sync();
    },
    async () => rows,
  );
}

async function doneErasures(store: Pick<KeyStore, 'erasures'>): Promise<ReadonlySet<string>> {
  const ids = new Set<string>();
  for await (const { id, done_at } of storedErasures(store)) if (done_at !== undefined) ids.add(id);
  return ids;
}

/** Reads the whole file. @throws BackupDamagedError, the file system's errors, the signal's reason */
export async function checkKeysBackup(path: string, signal: AbortSignal): Promise<KeysBackup> {
  const hash = createHash('sha256');
  const erasures: Erasure[] = [];
  let rows = 0;
  let first = true;
  let last: Buffer | undefined;
  const take = (line: Buffer): void => {
    hash.update(line);
    const found = parsed(line);
    if (first) refuseOtherHeader(found as HeaderMark<'gift_keys'> | undefined);
    if (Array.isArray(found)) rows += 1;
    else if (!first) erasures.push(found as Erasure);
    first = false;
  };
  for await (const lines of linesOf(path)) {
    signal.throwIfAborted();
    for (const line of lines) {
      if (last !== undefined) take(last);
      last = line;
    }
  }
  const end = last === undefined || first ? undefined : (parsed(last) as Footer | undefined);
  if (end?.sha256 === undefined)
    throw new BackupDamagedError('is not a whole backup of a key store: its end is missing');
  if (end.sha256 !== hash.digest('hex') || end.rows !== rows)
    throw new BackupDamagedError('has been altered: it is not what its hash says');
  return { rows, erasures };
}

function refuseOtherHeader(header: HeaderMark<'gift_keys'> | undefined): void {
  if (typeof header?.gift_keys !== 'number')
    throw new BackupDamagedError('is not a backup of a key store, or its beginning has been altered');
  refuseFormat(header.gift_keys, header.version);
}

interface Footer {
  readonly rows?: number;
  readonly sha256?: string;
}

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
  for await (const rows of rowsIn(path, backup.rows)) {
    signal.throwIfAborted();
    for (const fate of await addRows(store, rows)) restored[fate] += 1;
  }
  return restored;
}

/** The rows of a checked backup, in batches. @throws BackupDamagedError where the file has changed since */
async function* rowsIn(path: string, count: number): AsyncGenerator<readonly SubjectRow[], void> {
  let batch: SubjectRow[] = [];
  let number = 0;
  for await (const lines of linesOf(path))
    for (const line of lines) {
      const found = parsed(line);
      if (!Array.isArray(found)) continue;
      const [id, lookup, secret] = found as unknown as Row;
      batch.push({ id, lookup, secret });
      number += 1;
      if (batch.length < AT_ONCE) continue;
      yield batch;
      batch = [];
    }
  if (batch.length > 0) yield batch;
  if (number !== count) throw new BackupDamagedError('has been altered: it was whole a moment ago');
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

/** Result of `rewrapKeys`. */
interface Rewrapped {
  /** Number of rows that were read. */
  readonly rows: number;
  /** Number of rows that were wrapped under another key than the first. */
  readonly rewrapped: number;
  /** Ids of rows that were altered: they can't be wrapped again, and stay as they are. */
  readonly altered: readonly string[];
}

/**
 * Wraps every secret under the first master key; once it has resolved, the later keys are no longer needed. Repeating
 * an interrupted call finishes it.
 * @throws UnavailableError; EngineError naming MASTER_KEY where a key is missing
 */
export async function rewrapKeys(
  store: Pick<KeyStore, 'page' | 'rewrap'>,
  master: MasterKeys,
  signal: AbortSignal,
): Promise<Rewrapped> {
  let rows = 0;
  let rewrapped = 0;
  const altered: string[] = [];
  for await (const page of pages<SubjectRow>(AT_ONCE, async (last) => store.page(last?.id, AT_ONCE))) {
    signal.throwIfAborted();
    const wrappedAgain: Pick<SubjectRow, 'id' | 'secret'>[] = [];
    for (const { id, secret } of page.filter((row) => !master.isCurrent(row.secret))) {
      try {
        wrappedAgain.push({ id, secret: master.seal(master.open(secret, id), id) });
      } catch (error) {
        if (!(error instanceof AlteredDataError)) throw error;
        altered.push(id);
      }
    }
    await store.rewrap(wrappedAgain);
    rows += page.length;
    rewrapped += wrappedAgain.length;
  }
  return { rows, rewrapped, altered };
}
