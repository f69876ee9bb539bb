/** The role `projector`: keeps the read models up to date, carries out rebuilds, and keeps the tree over the log. */
import { resources } from '../../lib/async/resources.js';
import { startRebuilder } from '../../runtime/readmodels/maintenance/rebuilder.js';
import { type ProjectorOptions, startProjector } from '../../runtime/readmodels/projector.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import { startTree, type TreeSettings } from '../tree.js';

export interface RunningProjector {
  /** Stores folded documents. Nothing is written after it resolves. */
  close(): Promise<void>;
}

/** @throws Error when the read store was filled from another log */
export async function projectInProcess({
  stored,
  tree,
  ...options
}: Omit<ProjectorOptions, 'leaseMs' | 'retireMs'> & {
  readonly followers: Pick<Followers, 'start'>;
  /** `events` as the engine holds them. */
  readonly stored: EventStore;
  /** Absent: no tree is kept. */
  readonly tree?: TreeSettings | undefined;
}): Promise<RunningProjector> {
  const open = resources();
  open.add(await startProjector(options));
  open.add(startRebuilder(options));
  if (tree !== undefined) open.add(startTree(tree, { ...options, stored, records: options.store.records }));
  return open;
}
