import type { DomainEvent } from './decider.js';

export const RESTORED_STREAM = 'log-restored';

/**
 * All earlier events came from a backup of another log, up to `position` there (null: an empty log). `hash` is the hash
 * of the backup's events, `backed_up_at` the backup's start (ISO 8601, UTC). `without_key`: the log's HASH_KEY is lost.
 */
export type LogRestored = DomainEvent<
  'LogRestored',
  {
    readonly from_log_id: string;
    readonly to_log_id: string;
    readonly events: number;
    readonly position: string | null;
    readonly hash: string;
    readonly backed_up_at: string;
    readonly reason: string;
    readonly without_key?: true;
  }
>;
