/**
 * A backup of the key store: a text file of JSON lines. The first is a header, then one row a line, `[id, lookup,
 * secret]`; the last holds the count of rows and the SHA-256 of everything before it. So a file that was cut or altered
 * anywhere is detected. Secrets stay wrapped under MASTER_KEY.
 */
import { createHash } from 'node:crypto';
import type { KeyStore, SubjectRow } from '../../ports/keyStore.js';
import { writeDraft } from '../backup/draftFile.js';

/** The format this program writes, and the only one it reads. */
const FORMAT = 1;
const AT_ONCE = 1_000;

/** The file is no whole backup of a key store; the message says why. */
export class KeysBackupDamagedError extends Error {
  override readonly name = 'KeysBackupDamagedError';
}

/**
 * Writes every row into a new file, see `writeDraft`. @returns how many
 * @throws BackupExistsError, UnavailableError, the file system's errors, the signal's reason
 */
export async function backupKeys(
  store: Pick<KeyStore, 'page'>,
  path: string,
  { takenAt, signal }: { readonly takenAt: string; readonly signal: AbortSignal },
): Promise<number> {
  let rows = 0;
  return writeDraft(
    path,
    async (file) => {
      const hash = createHash('sha256');
      const write = async (text: string): Promise<void> => {
        hash.update(text);
        await file.appendFile(text);
      };
      await write(`${JSON.stringify({ gift_keys: FORMAT, taken_at: takenAt })}\n`);
      for (let after: string | undefined; ;) {
        signal.throwIfAborted();
        const page = await store.page(after, AT_ONCE);
        if (page.length === 0) break;
        rows += page.length;
        after = page.at(-1)?.id;
        await write(page.map(({ id, lookup, secret }) => `${JSON.stringify([id, lookup, secret])}\n`).join(''));
      }
      await file.appendFile(`${JSON.stringify({ rows, sha256: hash.digest('hex') })}\n`);
      await file.sync();
    },
    async () => rows,
  );
}

/** The rows of a backup. @throws KeysBackupDamagedError */
export function readKeysBackup(text: string): readonly SubjectRow[] {
  const damaged = (why: string): KeysBackupDamagedError =>
    new KeysBackupDamagedError(`this is no whole backup of a key store: ${why}`);
  const end = text.lastIndexOf('\n', text.length - 2) + 1;
  const [header, footer] = [parsed(text.slice(0, text.indexOf('\n'))), parsed(text.slice(end))] as Lines;
  if (header?.gift_keys !== FORMAT) throw damaged('its first line is not that of one');
  if (footer?.sha256 === undefined) throw damaged('its end is missing');
  const body = text.slice(0, end);
  if (createHash('sha256').update(body).digest('hex') !== footer.sha256) throw damaged('it was altered');
  return body
    .split('\n')
    .slice(1, -1)
    .map((line) => {
      const [id, lookup, secret] = JSON.parse(line) as [string, string, string];
      return { id, lookup, secret };
    });
}

type Lines = [{ readonly gift_keys?: number } | undefined, { readonly sha256?: string } | undefined];

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

/**
 * Adds the rows that are not there. @returns how many are left out, since the key store has another row in their place
 * @throws UnavailableError: repeating it is safe
 */
export async function restoreKeys(
  store: Pick<KeyStore, 'add'>,
  rows: readonly SubjectRow[],
  signal: AbortSignal,
): Promise<number> {
  let leftOut = 0;
  for (let from = 0; from < rows.length; from += AT_ONCE) {
    signal.throwIfAborted();
    const some = rows.slice(from, from + AT_ONCE);
    const standing = await store.add(some);
    leftOut += some.filter(({ id, lookup }) => standing.get(lookup)?.id !== id).length;
  }
  return leftOut;
}
