/**
 * The role `projector`: it updates the read models, carries out their maintenance, and maintains the tree over the log.
 */
import { type Background, openBackground } from '../../adapters/embedded/background.js';
import { resources } from '../../lib/async/resources.js';
import { openTileFolder } from '../../ops/evidence/index.js';
import { refuseAlteredLog } from '../../ops/readmodels/refuseAlteredLog.js';
import { type MaintenanceOptions, startMaintenance, startProjector } from '../../runtime/readmodels/index.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import { openScratch } from '../scratchStores.js';
import { startTree, type TreeSettings } from '../tree.js';

export interface RunningProjector {
  /** Resolves when the projector's first thread works, or has ended; absent where it has no thread. */
  readonly loaded?: Promise<void>;
  /** Looks for requests of maintenance at once. */
  poll(): void;
  /** Stores the folded documents, and ends the projector. Nothing is written after it resolves. */
  close(): Promise<void>;
}

/**
 * What orders of maintenance need besides the engines.
 * @param stored the log with events as stored: neither decrypted nor upcast
 * @param background thread that is loaded already, for long-running processes
 */
export function maintenanceTools(
  stored: EventStore,
  { dir, keys }: Pick<TreeSettings, 'dir' | 'keys'>,
  dataDir: string,
  background?: Background,
): Pick<MaintenanceOptions, 'checkLog' | 'openScratch'> {
  return {
    checkLog: async (options) => refuseAlteredLog({ stored, folder: openTileFolder(dir, stored.logId), keys }, options),
    openScratch: async () => openScratch(dataDir, background),
  };
}

/** Starts the projector in this thread. @throws Error when the read store was filled from another log */
export async function projectInProcess({
  stored,
  tree,
  dataDir,
  openScratch,
  background: given,
  ...options
}: Omit<Parameters<typeof startProjector>[0], 'leaseMs' | 'retireMs'> & {
  readonly followers: Pick<Followers, 'start'>;
  readonly polledByFronts?: boolean;
  /** The log of `events`, with events as stored: neither decrypted nor upcast. */
  readonly stored: EventStore;
  /** Settings of the tree over the log. */
  readonly tree: TreeSettings;
  readonly dataDir: string;
  /** Thread that writes copies of verifications; by default one of its own. */
  readonly background?: Background | undefined;
  /** Default: a store in the data folder, written by `background`. */
  readonly openScratch?: MaintenanceOptions['openScratch'] | undefined;
}): Promise<RunningProjector> {
  const { logger } = options;
  const open = resources();
  open.add(await startProjector(options));
  const background =
    given ??
    open.add(
      openBackground({
        onDeath: (err) => logger.warn({ err }, 'the thread that writes copies for verifications ended'),
        atOnce: openScratch === undefined,
      }),
    );
  const tools = maintenanceTools(stored, tree, dataDir, background);
  const maintenance = open.add(
    startMaintenance({ ...options, ...tools, ...(openScratch === undefined ? {} : { openScratch }) }),
  );
  open.add(startTree(tree, { ...options, stored, records: options.store.records }));
  await background.loaded;
  return { poll: maintenance.poll, close: async () => open.close() };
}
