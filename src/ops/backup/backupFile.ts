/**
 * The file of a backup, in lines of JSON: a header; the events, each as its canonical text (`logHash.ts`); a footer;
 * the SHA-256 of all lines before, which detects every cut and change. The footer's hash is that of
 * `sed '1d' FILE | head -n -2 | sha256sum`.
 */
import { createHash, type Hash } from 'node:crypto';
import type { FileHandle } from 'node:fs/promises';
import { FORMAT_MARK } from '../../ports/dataFormat.js';
import type { EventMetadata, Position, RecordedEvent } from '../../ports/eventStore.js';
import { BackupDamagedError, type HeaderMark, linesOf, parsed, refuseFormat } from './backupLines.js';

const SEAL = '{"sha256":"';
const sealOf = (all: Hash): string => `${SEAL}${all.digest('hex')}"}\n`;

interface BackupHeader {
  readonly log_id: string;
  /** Start of the backup: ISO 8601, UTC. */
  readonly started_at: string;
  /** Value that verifies a HASH_KEY without revealing it; null where the key was unknown. */
  readonly hash_key_check: string | null;
}

interface BackupFooter {
  readonly events: number;
  /** Position of the last event; null where the log was empty. */
  readonly position: Position | null;
  /** SHA-256 (hex) over the events, as `gift copy` shows it. */
  readonly hash: string;
}

interface BackupWriter {
  /** Appends the canonical texts of events. */
  add(texts: readonly string[]): Promise<void>;
  /** Writes the footer and the seal. Resolves once everything is on disk. */
  finish(footer: BackupFooter): Promise<void>;
}

/** Writes a backup to `file`, which must be empty. */
export async function writeBackup(file: FileHandle, header: BackupHeader): Promise<BackupWriter> {
  const all = createHash('sha256');
  const write = async (text: string, hashed = true): Promise<void> => {
    const bytes = Buffer.from(text);
    if (hashed) all.update(bytes);
    for (let written = 0; written < bytes.length;) written += (await file.write(bytes, written)).bytesWritten;
  };
  await write(`${JSON.stringify({ gift_backup: FORMAT_MARK.format, version: FORMAT_MARK.version, ...header })}\n`);
  return {
    add: async (texts) => (texts.length === 0 ? undefined : write(`${texts.join('\n')}\n`)),
    async finish(footer) {
      await write(`${JSON.stringify(footer)}\n`);
      await write(sealOf(all), false);
      await file.sync();
    },
  };
}

export interface Backup extends BackupHeader, BackupFooter {
  readonly bytes: number;
}

/**
 * Reads the whole backup file, and checks it against its seal and its footer. `onProgress` gets the number of events
 * read.
 * @throws BackupDamagedError; the file system's errors; the signal's reason
 */
export async function checkBackup(
  path: string,
  {
    signal,
    onProgress,
  }: { readonly signal?: AbortSignal | undefined; readonly onProgress?: (events: number) => void } = {},
): Promise<Backup> {
  const all = createHash('sha256');
  const events = createHash('sha256');
  let header: BackupHeader | undefined;
  let bytes = 0;
  let count = 0;
  // The last two lines are the footer and the seal, not events.
  let before: Buffer | undefined;
  let last: Buffer | undefined;
  for await (const lines of linesOf(path)) {
    signal?.throwIfAborted();
    for (const line of lines) {
      bytes += line.length;
      if (header === undefined) {
        header = headerOf(line);
        all.update(line);
        continue;
      }
      if (before !== undefined) {
        take(all, events, before);
        count += 1;
      }
      before = last;
      last = line;
    }
    onProgress?.(count);
  }
  if (header === undefined) throw new BackupDamagedError('is empty');
  if (before === undefined || last?.toString('latin1', 0, SEAL.length) !== SEAL)
    throw new BackupDamagedError('is cut short, or its end has been altered');
  all.update(before);
  if (last.toString() !== sealOf(all)) throw new BackupDamagedError('has been altered: it is not what its hash says');
  const footer = parsed(before) as BackupFooter | undefined;
  if (footer?.events !== count || footer.hash !== events.digest('hex'))
    throw new BackupDamagedError('contradicts itself: it does not hold the events that it says');
  return { ...header, ...footer, bytes };
}

function take(all: Hash, events: Hash, line: Buffer): void {
  all.update(line);
  events.update(line);
}

/**
 * The events of a checked backup; their positions are their numbers, from 1.
 * @throws BackupDamagedError where the file has changed since the check
 */
export async function* eventsOfBackup(
  path: string,
  { events: count }: Pick<Backup, 'events'>,
  size: number,
): AsyncGenerator<RecordedEvent[], void> {
  let batch: RecordedEvent[] = [];
  let number = 0;
  let first = true;
  for await (const lines of linesOf(path)) {
    for (const line of lines) {
      if (first) {
        first = false;
        continue;
      }
      if (number === count) break;
      batch.push(eventOf(line, ++number));
      if (batch.length < size) continue;
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
  if (number < count) throw new BackupDamagedError('is cut short: it was whole a moment ago');
}

type EventLine = readonly [
  stream: string,
  revision: number,
  id: string,
  type: string,
  at: string,
  data: object,
  metadata: EventMetadata,
];

function eventOf(line: Buffer, number: number): RecordedEvent {
  const found = parsed(line) as EventLine | undefined;
  if (!Array.isArray(found) || found.length !== 7)
    throw new BackupDamagedError(`has been altered: line ${number + 1} is not an event`);
  const [stream, revision, id, type, at, data, metadata] = found;
  return { stream, revision, id, type, at, data, metadata, position: positionOf(number) };
}

export function positionOf(number: number): Position {
  return String(number).padStart(16, '0');
}

function headerOf(line: Buffer): BackupHeader {
  const found = parsed(line) as (Partial<BackupHeader> & HeaderMark<'gift_backup'>) | undefined;
  if (typeof found?.gift_backup !== 'number' || typeof found.log_id !== 'string')
    throw new BackupDamagedError('is not a backup of gift, or its beginning has been altered');
  refuseFormat(found.gift_backup, found.version);
  return { log_id: found.log_id, started_at: String(found.started_at), hash_key_check: found.hash_key_check ?? null };
}
