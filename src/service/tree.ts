/** Folder and settings of the tree over the log. */
import { join } from 'node:path';
import type { Logger } from 'pino';
import { currentTime } from '../lib/clock.js';
import { EngineError } from '../lib/engineError.js';
import {
  startTreeKeeper,
  type TileFolder,
  tileFolder,
  treeFault,
  type WitnessAddress,
  witnessClient,
} from '../ops/evidence/index.js';
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
  readonly witnesses: readonly WitnessAddress[];
}

type Settings = Pick<Config, 'dataDir' | 'sealDir' | 'sealEveryMs' | 'sealWitnesses' | 'publicUrl'>;

export const treeDir = ({ dataDir, sealDir }: Pick<Settings, 'dataDir' | 'sealDir'>): string =>
  sealDir ?? join(dataDir, 'tree');

export const treePath = (dir: string, logId: string): string => join(dir, logId);

/** The tile folder of one log. @throws EngineError where the folder has another release's data format */
export function treeFolder(dir: string, logId: string): TileFolder {
  const path = treePath(dir, logId);
  const fault = treeFault(path);
  if (fault !== undefined)
    throw new EngineError(
      'SEAL_DIR',
      `${path} ${fault.problem}: ${fault.remedy}, or move the folder away: it is made again from the log`,
    );
  return tileFolder(path);
}

export function treeSettings(config: Settings, { sealKeys }: Pick<Keys, 'sealKeys'>): TreeSettings {
  return {
    dir: treeDir(config),
    everyMs: config.sealEveryMs,
    host: config.publicUrl === undefined ? 'localhost' : new URL(config.publicUrl).host,
    keys: sealKeys,
    witnesses: config.sealWitnesses,
  };
}

export interface TreeDeps {
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
    folder: treeFolder(dir, stored.logId),
    keys,
    host,
    everyMs,
    witnesses: witnesses.map(witnessClient),
    now: currentTime,
  });
}
