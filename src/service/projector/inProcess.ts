/** The role `projector`: keeps the read models up to date, and carries out rebuilds. */
import { resources } from '../../lib/async/resources.js';
import { startRebuilder } from '../../runtime/readmodels/maintenance/rebuilder.js';
import { type ProjectorOptions, startProjector } from '../../runtime/readmodels/projector.js';
import type { Followers } from '../../runtime/supervision/followers.js';

export interface RunningProjector {
  /** Stores folded documents. Nothing is written after it resolves. */
  close(): Promise<void>;
}

/** @throws Error when the read store was filled from another log */
export async function projectInProcess(
  options: Omit<ProjectorOptions, 'leaseMs' | 'retireMs'> & { readonly followers: Pick<Followers, 'start'> },
): Promise<RunningProjector> {
  const open = resources();
  open.add(await startProjector(options));
  open.add(startRebuilder(options));
  return open;
}
