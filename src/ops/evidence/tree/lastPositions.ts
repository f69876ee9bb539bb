/** The positions of a log's every 256th event, in one file, a line each. The file grows only at its end. */
import { type FileHandle, open } from 'node:fs/promises';
import { keepOwner } from '../../../lib/files/keepOwner.js';
import type { Position } from '../../../ports/eventStore.js';

/** Bytes to read at the file's start to find its first line feed: more than the line of any position. */
const FIRST_BYTES = 64;

/** The file of positions. Every method throws the file system's errors. */
export interface LastPositions {
  /** Number of lines, without a last one that was cut short. */
  count(): Promise<number>;
  at(index: number): Promise<Position | undefined>;
  append(positions: readonly Position[]): Promise<void>;
}

interface Opened {
  readonly file: FileHandle;
  /** Bytes of each line, with its line feed; 0: the file has no line. */
  readonly width: number;
  readonly count: number;
}

export function lastPositions(path: string): LastPositions {
  async function opened<T>(flags: 'r' | 'a+', use: (opened: Opened) => Promise<T>): Promise<T> {
    const file = await open(path, flags, 0o600);
    try {
      const { buffer, bytesRead } = await file.read(Buffer.alloc(FIRST_BYTES), 0, FIRST_BYTES, 0);
      const width = buffer.subarray(0, bytesRead).indexOf('\n') + 1;
      return await use({ file, width, count: width === 0 ? 0 : Math.floor((await file.stat()).size / width) });
    } finally {
      await file.close();
    }
  }

  const reading = async <T>(use: (opened: Opened) => Promise<T>, missing: T): Promise<T> =>
    opened('r', use).catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return missing;
      throw error;
    });

  return {
    count: async () => reading(async ({ count }) => count, 0),
    at: async (index) =>
      reading(async ({ file, width, count }) => {
        if (index < 0 || index >= count) return undefined;
        const { buffer } = await file.read(Buffer.alloc(width), 0, width, index * width);
        return buffer.toString('latin1', 0, width - 1);
      }, undefined),
    append: async (positions) =>
      opened('a+', async ({ file, width, count }) => {
        if (count === 0) keepOwner(path);
        await file.truncate(width * count);
        await file.appendFile(positions.map((position) => `${position}\n`).join(''), 'latin1');
      }),
  };
}
