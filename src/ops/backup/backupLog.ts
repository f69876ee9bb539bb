/**
 * BackupLog: writes the present event log to a file while the service runs. Events never change and positions have no
 * gaps, so everything up to the log's end at the start is consistent; later events are left for the next backup.
 */
import { randomBytes } from 'node:crypto';
import { open, rename, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { syncFolder } from '../../lib/files/syncFolder.js';
import { canonicalText, logHash } from './logHash.js';
import { type Backup, BackupDamagedError, checkBackup, writeBackup } from './backupFile.js';

const BATCH = 1_000;

export interface BackupOptions {
  /** The new file's path. */
  readonly path: string;
  /** See `BackupHeader`. */
  readonly hashKeyCheck: string | null;
  /** ISO 8601, UTC. */
  readonly now: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (step: 'write' | 'check', events: number, end: Position | undefined) => void;
}

/** A file of this name exists. */
export class BackupExistsError extends Error {
  override readonly name = 'BackupExistsError';
}

/**
 * Makes the backup and verifies it by reading. The file gets its name (mode 0600) only once it is whole. A process that
 * is killed in that very moment leaves an empty file, which is no backup.
 * @throws BackupExistsError, UnavailableError, the file system's errors, the signal's reason; then nothing is left
 * behind
 */
export async function backupLog(
  events: Pick<EventStore, 'logId' | 'end' | 'readAll'>,
  { path, hashKeyCheck, now, signal, onProgress }: BackupOptions,
): Promise<Backup> {
  // Process ids repeat in containers: a draft of a killed process must not be in the way.
  const draft = `${path}.${randomBytes(4).toString('hex')}.part`;
  const end = await events.end();
  const file = await open(draft, 'wx', 0o600);
  try {
    try {
      const writer = await writeBackup(file, { log_id: events.logId, started_at: now, hash_key_check: hashKeyCheck });
      const hash = logHash();
      if (end !== undefined) {
        for await (const batch of events.readAll(undefined, {}, { batchSize: BATCH })) {
          signal?.throwIfAborted();
          const texts = batch.events.filter(({ position }) => position <= end).map(canonicalText);
          for (const text of texts) hash.add(text);
          await writer.add(texts);
          onProgress?.('write', hash.count, end);
          if (batch.position >= end) break;
        }
      }
      await writer.finish({ events: hash.count, position: end ?? null, hash: hash.digest() });
    } finally {
      await file.close();
    }
    const made = await checkBackup(draft, {
      signal,
      onProgress: (count) => onProgress?.('check', count, end),
    });
    await give(draft, path);
    return made;
  } catch (error) {
    // What was just written reads differently.
    if (error instanceof BackupDamagedError)
      throw new Error(`the disk does not give back what was written to ${path}: the backup ${error.message}`, {
        cause: error,
      });
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Renames a file durably, unless the name is taken. Works on shares without hard links. */
async function give(draft: string, path: string): Promise<void> {
  try {
    await (await open(path, 'wx')).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new BackupExistsError(`${path} is there already`);
    throw error;
  }
  try {
    await rename(draft, path);
  } catch (error) {
    // This function took the name a moment ago.
    await rm(path, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}
