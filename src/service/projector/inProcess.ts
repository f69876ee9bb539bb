/** What the role `projector` does: keeps the read models up to date, and rebuilds what is asked for. */
import { resources } from '../../lib/async/resources.js';
import { startRebuilder } from '../../runtime/readmodels/maintenance/rebuilder.js';
import { type ProjectorOptions, startProjector } from '../../runtime/readmodels/projector.js';
import type { Followers } from '../../runtime/supervision/followers.js';

/** The role at work. */
export interface Projecting {
  /** Stores what is folded, hands on what was begun, and resolves when nothing more will be written. */
  close(): Promise<void>;
}

/**
 * Begins, on this thread, as two of the process's followers. @throws Error when the read store was filled from another
 * log
 */
export async function projectHere(
  options: Omit<ProjectorOptions, 'leaseMs' | 'retireMs'> & { readonly followers: Pick<Followers, 'start'> },
): Promise<Projecting> {
  const open = resources();
  open.add(await startProjector(options), (one) => one.close());
  open.add(startRebuilder(options), (one) => one.close());
  return open;
}
