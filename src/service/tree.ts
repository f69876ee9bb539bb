/** Folder and settings of the tree over the log. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { openTileFolder, startTreeKeeper } from '../ops/evidence/index.js';
import { treeAppender } from '../ops/history/treeAppender.js';
import type { EventStore } from '../ports/eventStore.js';
import type { Records } from '../ports/readStore.js';
import type { Followers } from '../runtime/supervision/followers.js';
import type { Config } from './config.js';
import type { Keys } from './keys.js';

/** Settings of the tree, as plain data that can be passed to a thread. Secret, since they contain keys. */
export interface TreeSettings {
  readonly dir: string;
  readonly everyMs: number;
  readonly host: string;
  readonly keys: readonly string[];
  readonly witnesses: Config['sealWitnesses'];
}

type Settings = Pick<Config, 'dataDir' | 'sealDir' | 'sealEveryMs' | 'sealWitnesses' | 'publicUrl'>;

export const treeDir = ({ dataDir, sealDir }: Pick<Settings, 'dataDir' | 'sealDir'>): string =>
  sealDir ?? join(dataDir, 'tree');

/** Host in the origin of a log without a head. */
export const treeHost = ({ publicUrl }: Pick<Settings, 'publicUrl'>): string =>
  publicUrl === undefined ? 'localhost' : new URL(publicUrl).host;

export function treeSettings(config: Settings, { sealKeys }: Pick<Keys, 'sealKeys'>): TreeSettings {
  return {
    dir: treeDir(config),
    everyMs: config.sealEveryMs,
    host: treeHost(config),
    keys: sealKeys,
    witnesses: config.sealWitnesses,
  };
}

interface TreeDeps {
  readonly events: EventStore;
  readonly stored: EventStore;
  readonly records: Records;
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
}

export function startTree(
  { dir, everyMs, host, keys, witnesses }: TreeSettings,
  { events, stored, records, holder, logger, followers }: TreeDeps,
): { close(): Promise<void> } {
  return startTreeKeeper({
    events,
    stored,
    records,
    holder,
    logger,
    followers,
    folder: openTileFolder(dir, stored.logId),
    keys,
    host,
    everyMs,
    witnesses,
    append: treeAppender(events),
  });
}
