/** The role `projector`: keeps the read models up to date, and rebuilds those that were asked for. */
import { resources } from '../../lib/async/resources.js';
import { startRebuilder } from '../../runtime/readmodels/maintenance/rebuilder.js';
import { type ProjectorOptions, startProjector } from '../../runtime/readmodels/projector.js';
import type { Followers } from '../../runtime/supervision/followers.js';

export interface RunningProjector {
  /** Stores what is folded and resolves when nothing more will be written. */
  close(): Promise<void>;
}

/**
 * Starts it on this thread, as two of the process's followers. @throws Error when the read store was filled from
 * another log
 */
export async function projectInProcess(
  options: Omit<ProjectorOptions, 'leaseMs' | 'retireMs'> & { readonly followers: Pick<Followers, 'start'> },
): Promise<RunningProjector> {
  const open = resources();
  open.add(await startProjector(options));
  open.add(startRebuilder(options));
  return open;
}
