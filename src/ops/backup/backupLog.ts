/**
 * BackupLog: writes the log up to its end at the start of the backup, while the service runs. That is consistent, since
 * events never change and positions have no gaps.
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
  readonly path: string;
  /** See `BackupHeader`. */
  readonly hashKeyCheck: string | null;
  /** ISO 8601, UTC. */
  readonly now: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (step: 'write' | 'check', events: number, end: Position | undefined) => void;
}

export class BackupExistsError extends Error {
  override readonly name = 'BackupExistsError';
}

/**
 * Writes the backup, reads it back to check it, then gives the file its name (mode 0600). A process killed in that last
 * step leaves an empty file.
 * @throws BackupExistsError, UnavailableError, the file system's errors, the signal's reason; no file is left then
 */
export async function backupLog(
  events: Pick<EventStore, 'logId' | 'end' | 'readAll'>,
  { path, hashKeyCheck, now, signal, onProgress }: BackupOptions,
): Promise<Backup> {
  // Not the process id, which repeats in containers: a killed process may have left its draft.
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
    await renameUnlessTaken(draft, path);
    return made;
  } catch (error) {
    if (error instanceof BackupDamagedError)
      throw new Error(`the disk does not give back what was written to ${path}: the backup ${error.message}`, {
        cause: error,
      });
    throw error;
  } finally {
    await rm(draft, { force: true });
  }
}

/** Works on shares without hard links, too. */
async function renameUnlessTaken(draft: string, path: string): Promise<void> {
  try {
    await (await open(path, 'wx')).close();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') throw new BackupExistsError(`${path} is there already`);
    throw error;
  }
  try {
    await rename(draft, path);
  } catch (error) {
    // The empty file made above.
    await rm(path, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}
