/** A backup is compared with the heads that were signed over its log, before anything of it is used. */
import { verifyLog } from '../ops/evidence/index.js';
import type { EventStore } from '../ports/eventStore.js';
import { type Config } from '../service/config.js';
import { findSealKeys } from '../service/keys.js';
import { retainedHeads, witnessesOf } from './audit/heads.js';
import { CommandFailure, type Terminal } from './terminal.js';

export interface HeadFlags {
  readonly checkpoint: readonly string[];
  readonly behind?: true;
}

/**
 * The tiles of the lost log are not needed: a head tells how many events it covered.
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
  const { fault } = await verifyLog(
    { stored: restored, keys: findSealKeys(config) ?? [] },
    {
      signal: terminal.signal,
      retained: await retainedHeads(terminal, checkpoint),
      witnesses: { ...witnessesOf(config, terminal), logId },
    },
  );
  if (fault === undefined) return;
  if (fault.what === 'cut off') {
    if (behind === true) return;
    throw new CommandFailure(
      `the backup is behind a signed head: ${fault.message}. Nothing was restored: take a later backup; --behind restores this one all the same`,
    );
  }
  throw new CommandFailure(
    `the backup is not what was signed: ${fault.message}. Nothing was restored: take another backup`,
  );
}
