/** The lines of JSON that backups consist of. */
import { open } from 'node:fs/promises';
import { formatFault } from '../../ports/dataFormat.js';

const CHUNK = 1 << 20;
/** Most bytes of one line. Every event's line is shorter, since an append has at most 1,000,000 bytes. */
const MAX_LINE = 4_000_000;
const LINE_FEED = 10;

/** The file is not a whole backup. The message is a predicate that follows the file's name. */
export class BackupDamagedError extends Error {
  override readonly name = 'BackupDamagedError';
}

/** The format mark in the first line of a backup: its format is the value of the field that names the kind. */
export type HeaderMark<Kind extends string> = Readonly<Partial<Record<Kind, unknown>>> & { readonly version?: string };

/** @throws BackupDamagedError for a backup of another format */
export function refuseFormat(format: number, version: string | undefined): void {
  const fault = formatFault({ format, version });
  if (fault !== undefined) throw new BackupDamagedError(`${fault.problem}: ${fault.remedy}`);
}

/** Value of a line of JSON; `undefined` where the line is no JSON object or array. */
export function parsed(line: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(line.toString());
    return value instanceof Object ? value : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Lines of a file, in batches. Each line includes its line feed.
 * @throws BackupDamagedError, the file system's errors
 */
export async function* linesOf(path: string): AsyncGenerator<Buffer[], void> {
  const file = await open(path, 'r');
  try {
    let rest = Buffer.alloc(0);
    for (;;) {
      const chunk = Buffer.allocUnsafe(CHUNK);
      const { bytesRead } = await file.read(chunk, 0, CHUNK);
      if (bytesRead === 0) break;
      const text =
        rest.length === 0 ? chunk.subarray(0, bytesRead) : Buffer.concat([rest, chunk.subarray(0, bytesRead)]);
      const lines: Buffer[] = [];
      let from = 0;
      for (let end = text.indexOf(LINE_FEED); end >= 0; end = text.indexOf(LINE_FEED, from)) {
        lines.push(text.subarray(from, end + 1));
        from = end + 1;
      }
      rest = text.subarray(from);
      if (rest.length > MAX_LINE)
        throw new BackupDamagedError('is not a backup of gift, or has been altered: a line of it is too long');
      if (lines.length > 0) yield lines;
    }
    if (rest.length > 0) throw new BackupDamagedError('is cut short: its last line is not whole');
  } finally {
    await file.close();
  }
}
