import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';

const MAX_FILE_BYTES = 100_000_000;

/** Characters of a piece that is looked for: pieces of random texts are never equal by chance. */
const PIECE = 11;

/** Which of these texts stand in an SQLite database, wholly or in part (from 21 characters on). */
export function textsInDatabase(database: string, texts: readonly string[]): readonly string[] {
  const textOf = new Map<string, string>();
  for (const text of texts)
    for (let at = 0; at + PIECE <= text.length; at += PIECE) textOf.set(text.slice(at, at + PIECE), text);
  const found = new Set<string>();
  for (const ending of ['', '-wal', '-shm', '-journal']) {
    const file = database + ending;
    if (!existsSync(file)) continue;
    // Closing a file drops this process's locks of it, so another process reads it.
    const content = execFileSync('cat', [file], { encoding: 'latin1', maxBuffer: MAX_FILE_BYTES });
    for (let at = 0; at + PIECE <= content.length; at++) {
      const text = textOf.get(content.slice(at, at + PIECE));
      if (text !== undefined) found.add(text);
    }
  }
  return [...found];
}
