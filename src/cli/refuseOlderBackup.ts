/** A backup is compared with the heads that were signed over its log, before anything of it is used. */
import { faultInWords, firstFault, readableLeaves, verifiersOf, verifyLog } from '../ops/evidence/index.js';
import type { EventStore } from '../ports/eventStore.js';
import { type Config } from '../service/config.js';
import { findSealKeys } from '../service/keys.js';
import { keptHeads, lastWords } from './audit/heads.js';
import { CommandFailure, type Terminal } from './terminal.js';

export interface HeadFlags {
  readonly checkpoint: readonly string[];
  readonly behind?: true;
}

/** A folder without tiles. Those of the lost log are not needed: a head tells how many events it covered. */
const NO_TILES = { read: async () => undefined, head: async () => undefined, witnessed: async () => undefined };

/**
 * @param restored the log made from the backup of the log `logId`
 * @throws CommandFailure where its events are not those that were signed, or, without `behind`, where some are missing
 */
export async function refuseOlderBackup(
  terminal: Terminal,
  config: Config,
  restored: EventStore,
  logId: string,
  { checkpoint, behind }: HeadFlags,
): Promise<void> {
  const known = verifiersOf(findSealKeys(config) ?? []);
  const found = await verifyLog(
    {
      stored: restored,
      leaves: await readableLeaves(restored),
      folder: NO_TILES,
      verifiersOf: known,
      kept: await keptHeads(terminal, checkpoint),
      witnessed: await lastWords(terminal, config.sealWitnesses, { logId, read: restored.read }, known),
    },
    { signal: terminal.signal },
  );
  const fault = firstFault(found);
  if (fault === undefined) return;
  if (fault.what === 'difference' && fault.difference.change === 'cut off') {
    if (behind === true) return;
    throw new CommandFailure(
      `the backup is behind a signed head: ${faultInWords(fault)}. Nothing was restored: take a later backup; --behind restores this one all the same`,
    );
  }
  throw new CommandFailure(
    `the backup is not what was signed: ${faultInWords(fault)}. Nothing was restored: take another backup`,
  );
}
