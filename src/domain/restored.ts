/** What an installation keeps of having been restored from a backup. */
import type { DomainEvent } from './decider.js';

/** The stream of all restores that a log has behind it. */
export const RESTORED_STREAM = 'log-restored';

/**
 * Everything before this event came from a backup of another log, up to `position` there (null: an empty log); what was
 * appended to that log later is not here. `hash` is that of the backup's events, `backed_up_at` when it was begun (ISO
 * 8601, UTC). `without_key`: the log's HASH_KEY is lost, and whoever restored said so.
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
