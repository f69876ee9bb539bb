/**
 * Commits of several processes and threads by one of them, so that their appends share its syncs to disk. It is a matter
 * of speed only: each may commit by itself at any time, under SQLite's lock.
 */
import type { AppendOutcome, AppendRequest } from './commit.js';

/** Commits requests, and never throws. `undefined`: their outcome is unknown. */
export type CommitGroup = (requests: readonly AppendRequest[]) => Promise<readonly AppendOutcome[] | undefined>;

/** Outcomes of requests; `undefined`: unknown; `'nowhere'`: nothing has received them, and their sender may commit them. */
export type Sent = readonly AppendOutcome[] | 'nowhere' | undefined;

export interface CommitLink {
  /** Whether another process commits for this one at present. */
  elsewhere(): boolean;
  /** Has another process commit them. Never throws. */
  send(requests: readonly AppendRequest[]): Promise<Sent>;
  /** Takes the requests of other processes from now on; `undefined`: none any more. */
  serve(commit: CommitGroup | undefined): void;
}

export interface SharedCommits extends CommitLink {
  /** Commits requests of a thread of this process. Never throws. */
  commit(requests: readonly AppendRequest[]): Promise<Sent>;
}

/** A link whose process commits for its threads as well. `outer`: the way to another process. */
export function shareCommits(outer: CommitLink | undefined): SharedCommits {
  let commit: CommitGroup | undefined;
  return {
    elsewhere: () => outer?.elsewhere() === true,
    send: async (requests) => (outer === undefined ? 'nowhere' : outer.send(requests)),
    serve(how) {
      commit = how;
      outer?.serve(how);
    },
    commit: async (requests) => (commit === undefined ? 'nowhere' : commit(requests)),
  };
}
