/** The role `projector`: it updates the read models, carries out rebuilds, and maintains the tree over the log. */
import { resources } from '../../lib/async/resources.js';
import { type ProjectorOptions, startProjector, startRebuilder } from '../../runtime/readmodels/index.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import { startTree, type TreeSettings } from '../tree.js';

export interface RunningProjector {
  /** Stores the folded documents, and ends the projector. Nothing is written after it resolves. */
  close(): Promise<void>;
}

/** Starts the projector in this thread. @throws Error when the read store was filled from another log */
export async function projectInProcess({
  stored,
  tree,
  ...options
}: Omit<ProjectorOptions, 'leaseMs' | 'retireMs'> & {
  readonly followers: Pick<Followers, 'start'>;
  /** The log of `events`, with events as stored: neither decrypted nor upcast. */
  readonly stored: EventStore;
  /** Settings of the tree over the log; absent: no tree is maintained. */
  readonly tree?: TreeSettings | undefined;
}): Promise<RunningProjector> {
  const open = resources();
  open.add(await startProjector(options));
  open.add(startRebuilder(options));
  if (tree !== undefined) open.add(startTree(tree, { ...options, stored, records: options.store.records }));
  return open;
}
