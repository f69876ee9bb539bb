/**
 * Commits of several processes by one of them, so that their appends share its syncs to disk. It is a matter of speed
 * only: each process may commit by itself at any time, under SQLite's lock.
 */
import type { AppendOutcome, AppendRequest } from './commit.js';

/** Commits requests, and never throws. `undefined`: their outcome is unknown. */
export type CommitGroup = (requests: readonly AppendRequest[]) => Promise<readonly AppendOutcome[] | undefined>;

export interface CommitLink {
  /** Whether another process commits for this one at present. */
  elsewhere(): boolean;
  /** Has another process commit them. `'nowhere'`: no process has received them, and this one may commit them. */
  send(requests: readonly AppendRequest[]): Promise<readonly AppendOutcome[] | 'nowhere' | undefined>;
  /** Takes the requests of other processes from now on; `undefined`: none any more. */
  serve(commit: CommitGroup | undefined): void;
}
