import { lstat, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { ByteSearch } from './byteSearch.js';

export interface FileMatch {
  readonly text: number;
  readonly file: string;
  /** Offset of the text's first match in the file, in bytes. */
  readonly at: number;
}

interface SearchedFiles {
  readonly files: number;
  readonly bytes: number;
}

const PIECE_BYTES = 1 << 20;
/** Error codes of files that were removed or replaced during the search. */
const GONE: ReadonlySet<string | undefined> = new Set(['ENOENT', 'ENOTDIR']);

/**
 * Searches a file, or all files below a folder, byte by byte; links, sockets and files removed during the search are
 * left out. No embedded store of these files may be open in this process: it would lose its locks.
 * @throws the file system's errors, the signal's reason
 */
export async function searchFiles(
  path: string,
  search: ByteSearch,
  onMatch: (match: FileMatch) => Promise<void>,
  signal: AbortSignal,
): Promise<SearchedFiles> {
  let files = 0;
  let bytes = 0;

  async function within(one: string): Promise<void> {
    signal.throwIfAborted();
    const found = await lstat(one);
    if (found.isDirectory()) {
      for (const name of (await readdir(one)).toSorted()) await within(join(one, name)).catch(unlessGone);
    } else if (found.isFile()) {
      bytes += await searchFile(one);
      files += 1;
    }
  }

  async function searchFile(file: string): Promise<number> {
    const handle = await open(file, 'r');
    try {
      const overlap = Math.max(0, search.longest - 1);
      const buffer = Buffer.alloc(overlap + PIECE_BYTES);
      const known = new Set<number>();
      let carried = 0;
      let read = 0;
      for (;;) {
        signal.throwIfAborted();
        const { bytesRead } = await handle.read(buffer, carried, PIECE_BYTES, read);
        if (bytesRead === 0) return read;
        const filled = carried + bytesRead;
        for (const { text, at } of search.in(buffer.subarray(0, filled))) {
          if (known.has(text)) continue;
          known.add(text);
          await onMatch({ text, file, at: read - carried + at });
        }
        read += bytesRead;
        carried = Math.min(overlap, filled);
        buffer.copyWithin(0, filled - carried, filled);
      }
    } finally {
      await handle.close();
    }
  }

  await within(path);
  return { files, bytes };
}

function unlessGone(error: unknown): void {
  if (!GONE.has((error as NodeJS.ErrnoException).code)) throw error;
}
