/** The log of an import, and its hash key. Both are made where they are missing, except by a dry run. */
import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import type { Config } from '../service/config.js';
import { openEventStore } from '../service/engines.js';
import { refuseUnlessHashKeyFits } from '../service/hashKeyCheck.js';
import { findHashKey, loadKeys } from '../service/keys.js';
import { temporaryFolder } from '../lib/files/folders.js';
import type { EventStore } from '../ports/eventStore.js';
import { hasEventLog } from './dataFolder.js';
import { type Terminal, writeLines } from './terminal.js';

export interface ImportLog {
  readonly events: EventStore;
  /** The log is new: the folder may be the wrong one. */
  readonly fresh: boolean;
  /** @throws EngineError where the log was made with another key; UnavailableError */
  hashKey(): Promise<Buffer>;
  close(): Promise<void>;
}

/** @throws CommandFailure, DataFileError, EngineError, UnavailableError */
export async function openImportLog(
  { stderr }: Pick<Terminal, 'stderr'>,
  config: Config,
  dryRun: boolean,
): Promise<ImportLog> {
  const { dataDir, eventStoreUrl } = config;
  const fresh = eventStoreUrl === undefined && !hasEventLog(dataDir);
  const passing = fresh && dryRun ? temporaryFolder('gift-dry-run-') : undefined;
  const remove = (): void => {
    if (passing !== undefined) rmSync(passing, { recursive: true, force: true });
  };
  try {
    const events = await openEventStore(passing === undefined ? config : { dataDir: passing });
    if (passing !== undefined)
      await writeLines(stderr, [`there is no event log in ${dataDir}: shown is what a first import would do`]);
    return {
      events,
      fresh,
      async hashKey() {
        await refuseUnlessHashKeyFits(events, () => findHashKey(config));
        return dryRun ? (findHashKey(config) ?? randomBytes(32)) : loadKeys(config).hashKey;
      },
      async close() {
        await events.close();
        remove();
      },
    };
  } catch (error) {
    remove();
    throw error;
  }
}
