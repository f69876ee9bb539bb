/** RestoreLog: copies a checked backup to a new log with its own id, and records the restore there. */
import { type LogRestored, RESTORED_STREAM } from '../../domain/restored.js';
import type { Caller, EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { type CopyProgress, type CopySource, copyLog } from './copyLog.js';
import { appendEvent } from '../../commands/transact.js';
import { type Backup, eventsOfBackup, positionOf } from './backupFile.js';
import { BackupDamagedError } from './backupLines.js';

interface RestoreOptions {
  readonly path: string;
  readonly backup: Backup;
  readonly by: Caller;
  readonly reason: string;
  /** True where the HASH_KEY of the backed-up log is lost, and the new log has another. */
  readonly withoutKey?: true;
  /** Inspects the copied events before the restore is recorded after them; may throw to refuse the restore. */
  readonly judge?: (target: EventStore) => Promise<void>;
  /** Time of the restore: ISO 8601, UTC. */
  readonly now: string;
  readonly signal?: AbortSignal;
  readonly onProgress?: (progress: CopyProgress) => void;
}

/**
 * Copies the backup to `target`, which must be empty, and records the restore.
 * @throws BackupDamagedError where the file has changed since the check; CopyRefusedError, CopyInterruptedError,
 * UnavailableError; what `judge` throws
 */
export async function restoreLog(
  target: EventStore,
  { path, backup, by, reason, withoutKey, judge, now, signal, onProgress }: RestoreOptions,
): Promise<void> {
  const copied = await copyLog({ source: backupSource(path, backup), target }, { seal: false, signal, onProgress });
  if (copied.hash !== backup.hash) throw new BackupDamagedError('has been altered since it was checked');
  await judge?.(target);
  const { log_id, events, position, hash, started_at } = backup;
  const data = {
    from_log_id: log_id,
    to_log_id: target.logId,
    events,
    position,
    hash,
    backed_up_at: started_at,
    reason,
  };
  const restored: LogRestored = {
    type: 'LogRestored',
    data: withoutKey === undefined ? data : { ...data, without_key: withoutKey },
  };
  await appendEvent(target, RESTORED_STREAM, restored, 'any', { by, now });
}

function backupSource(path: string, backup: Backup): CopySource {
  const end = backup.events === 0 ? undefined : positionOf(backup.events);
  return {
    logId: backup.log_id,
    end: async () => end,
    async *readAll(after, _filter, { batchSize = 1_000 } = {}) {
      for await (const events of eventsOfBackup(path, backup, batchSize)) {
        const rest = after === undefined ? events : events.filter(({ position }) => position > after);
        const { position } = events.at(-1) as RecordedEvent;
        if (rest.length > 0) yield { events: rest, position, caughtUp: position === end };
      }
    },
    // Nothing can be appended to a backup.
    sealed: async () => true,
    seal: async () => undefined,
  };
}
