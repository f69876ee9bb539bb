/** What a process of this machine has in its memory, as Linux shows it to its parent. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { open, readFile } from 'node:fs/promises';
import type { ByteSearch } from '../../../src/lib/files/byteSearch.js';

const PIECE = 4 << 20;
/** Programs and libraries, which nothing writes to, and what is the kernel's. */
const OTHERS = /^\S+ r-.* \/|\[(?:vvar|vvar_vclock|vsyscall|vdso)\]$/;

/** Indexes of the texts that are found. @throws where the system does not let this process read */
export async function searchMemory(pid: number, search: ByteSearch): Promise<ReadonlySet<number>> {
  const found = new Set<number>();
  const maps = await readFile(`/proc/${pid}/maps`, 'utf8');
  const memory = await open(`/proc/${pid}/mem`, 'r');
  const piece = Buffer.alloc(PIECE + search.longest);
  let bytes = 0;
  try {
    for (const line of maps.split('\n')) {
      const [, from = '', to = '', readable = ''] = /^([0-9a-f]+)-([0-9a-f]+) (.)/.exec(line) ?? [];
      if (readable !== 'r' || OTHERS.test(line)) continue;
      for (let at = Number.parseInt(from, 16); at < Number.parseInt(to, 16); at += PIECE) {
        const length = Math.min(piece.length, Number.parseInt(to, 16) - at);
        // A part that was given back since the list was made.
        const { bytesRead } = await memory.read(piece, 0, length, at).catch(() => ({ bytesRead: 0 }));
        bytes += bytesRead;
        for (const { text } of search.in(piece.subarray(0, bytesRead))) found.add(text);
      }
    }
  } finally {
    await memory.close();
  }
  if (bytes === 0) throw new Error(`nothing of the memory of ${pid} could be read`);
  return found;
}

/** Whether a process that this one has started can be looked into. */
export async function memoryCanBeRead(): Promise<boolean> {
  if (!existsSync('/proc/self/mem')) return false;
  const child = spawn(process.execPath, ['-e', 'process.stdin.resume(); console.log("up")'], { stdio: 'pipe' });
  await once(child.stdout, 'data');
  const read = searchMemory(child.pid ?? 0, { longest: 0, in: () => [] }).then(
    () => true,
    () => false,
  );
  return read.finally(() => child.stdin.end());
}
