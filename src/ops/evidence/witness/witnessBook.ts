/** State of a witness: a file with one line for each log. */
import { hash } from 'node:crypto';
import { replaceFile } from '../../../lib/files/replaceFile.js';
import { textOf } from '../../../lib/files/keptText.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { MalformedEvidenceError } from '../format/errors.js';
import { parseNote } from '../format/signedNote.js';
import type { WitnessedLog } from './witness.js';

export interface WitnessBook {
  latest(origin: string): WitnessedLog | undefined;
  /** @param originHash SHA-256 of the origin, in hex */
  ofHash(originHash: string): WitnessedLog | undefined;
  /**
   * Stores the latest head of a log; it is durable once the call has returned.
   * @throws the file system's errors; the log's former line is valid then
   */
  keep(log: WitnessedLog): void;
}

/**
 * Opens the file of a witness. Only one process may use it at a time: the caller holds a lock.
 * @throws MalformedEvidenceError for a file that is not as this wrote it: an empty start would lose what was cosigned
 */
export function openWitnessBook(file: string): WitnessBook {
  let logs = read(textOf(file) ?? '');
  return {
    latest: (origin) => logs.get(origin),
    ofHash: (originHash) => [...logs.values()].find(({ origin }) => hash('sha256', origin) === originHash),
    keep(log) {
      const next = new Map(logs).set(log.origin, log);
      replaceFile(file, Array.from(next.values(), ({ checkpoint }) => `${JSON.stringify({ checkpoint })}\n`).join(''));
      logs = next;
    },
  };
}

function read(text: string): ReadonlyMap<string, WitnessedLog> {
  const logs = new Map<string, WitnessedLog>();
  const lines = text === '' ? [] : text.split('\n');
  for (const [at, line] of lines.entries()) {
    const log = logOf(line, at + 1);
    if (logs.has(log.origin)) throw new MalformedEvidenceError(`line ${at + 1} is a second one of ${log.origin}`);
    logs.set(log.origin, log);
  }
  return logs;
}

function logOf(line: string, number: number): WitnessedLog {
  try {
    const { checkpoint } = JSON.parse(line) as { readonly checkpoint: string };
    const { origin, size, root } = parseCheckpoint(parseNote(checkpoint).body);
    return { origin, size, root, checkpoint };
  } catch (cause) {
    throw new MalformedEvidenceError(`line ${number} is not as a witness writes it`, { cause });
  }
}
