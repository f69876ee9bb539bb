/**
 * BackupLog: writes the log up to its end at the start of the backup, while the service runs. That is consistent, since
 * events never change and positions have no gaps.
 */
import type { EventStore, Position } from '../../ports/eventStore.js';
import { canonicalText, logHash } from './logHash.js';
import { writeDraft } from './draftFile.js';
import { type Backup, checkBackup, writeBackup } from './backupFile.js';
import { BackupDamagedError } from './backupLines.js';

const BATCH = 1_000;

interface BackupOptions {
  readonly path: string;
  /** Check value of the HASH_KEY; see `BackupHeader`. */
  readonly hashKeyCheck: string | null;
  /** Start of the backup: ISO 8601, UTC. */
  readonly now: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (step: 'write' | 'check', events: number, end: Position | undefined) => void;
}

/**
 * Writes the backup, and reads it back to check it; see `writeDraft`.
 * @throws BackupExistsError, UnavailableError, the file system's errors, the signal's reason; no file is left then
 */
export async function backupLog(
  events: Pick<EventStore, 'logId' | 'end' | 'readAll'>,
  { path, hashKeyCheck, now, signal, onProgress }: BackupOptions,
): Promise<Backup> {
  const end = await events.end();
  try {
    return await writeDraft(
      path,
      async (file) => {
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
      },
      async (draft) => checkBackup(draft, { signal, onProgress: (count) => onProgress?.('check', count, end) }),
    );
  } catch (error) {
    if (error instanceof BackupDamagedError)
      throw new Error(`the disk does not give back what was written to ${path}: the backup ${error.message}`, {
        cause: error,
      });
    throw error;
  }
}
