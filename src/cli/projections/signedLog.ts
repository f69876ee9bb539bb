/** `gift projections rebuild` and `repair` refuse a log that is not what was signed. */
import { verifiersOf } from '../../ops/evidence/index.js';
import { refuseAlteredLog } from '../../ops/readmodels/refuseAlteredLog.js';
import { findSealKeys } from '../../service/keys.js';
import { treeDir, treeFolder } from '../../service/tree.js';
import type { OpenedStores } from '../engines.js';
import { progressBar } from '../progress.js';
import { interrupted, type Terminal, usageFailure } from '../terminal.js';

export interface AlteredFlag {
  readonly altered?: true;
}

export const ALTERED_OPTION = [
  '--altered',
  'also from a log that is not what was signed (gift audit verify); wants --reason',
] as const;

/** @param reason of the command; null: none was given. @throws AlteredLogRefusedError, CommandFailure, UnavailableError */
export async function refuseUnlessSigned(
  { signal, stderr }: Terminal,
  { config, stored }: Pick<OpenedStores, 'config' | 'stored'>,
  { altered }: AlteredFlag,
  reason: string | null,
): Promise<void> {
  if (altered === true && reason === null) throw usageFailure('--altered wants --reason "<why>"');
  if (altered === true) return;
  const bar = progressBar(stderr, { doing: 'verifying the log', unit: 'events' });
  try {
    await refuseAlteredLog(
      {
        stored,
        folder: treeFolder(treeDir(config), stored.logId),
        verifiersOf: verifiersOf(findSealKeys(config) ?? []),
      },
      { signal, onProgress: (events) => bar(events, undefined) },
    );
  } catch (error) {
    throw signal.aborted ? interrupted('interrupted; nothing was changed') : error;
  } finally {
    bar.clear();
  }
}
