/** Has the witnesses of a log cosign its latest head, and publishes the head with their cosignatures. */
import { collectCosignatures } from '../../runtime/evidence/cosignatures.js';
import { tileHashReader } from '../../runtime/evidence/tiles.js';
import { proveConsistency } from '../../runtime/evidence/treeProofs.js';
import type { WitnessClient } from '../../runtime/evidence/witnessClient.js';
import { ToldError } from '../../runtime/supervision/followers.js';
import type { TileFolder } from '../../runtime/tree/tileFolder.js';
import type { SignedHead } from './signedHeads.js';

const TIMEOUT_MS = 5_000;

/** A witness has cosigned what this log does not continue: it was put back, or forked. */
export class WitnessDisagreesError extends ToldError {
  override readonly name = 'WitnessDisagreesError';
}

/**
 * The published head has all its tiles. A witness that does not answer is left out, for this head.
 * @param mayWrite throws where another process may keep the folder now
 * @returns what a witness has said against the log
 * @throws the file system's errors
 */
export async function askWitnesses(
  witnesses: readonly WitnessClient[],
  folder: TileFolder,
  head: SignedHead,
  mayWrite: () => void,
  signal: AbortSignal,
): Promise<WitnessDisagreesError | undefined> {
  if (witnesses.length === 0) return undefined;
  const read = tileHashReader(async (tile) => (await folder.read(tile)) ?? Buffer.alloc(0), head.size);
  const { note, outcomes } = await collectCosignatures(
    witnesses,
    { ...head, consistency: (from) => proveConsistency(read, from, head.size) },
    { timeoutMs: TIMEOUT_MS, signal },
  );
  if (signal.aborted) return undefined;
  mayWrite();
  if (note !== head.note) await folder.publish(note, []);
  for (const { witness, ...said } of outcomes) {
    if (said.outcome !== 'ahead' && said.outcome !== 'inconsistent') continue;
    const words = `the witness ${witness} has cosigned ${said.size} events, which this log of ${head.size} does not continue`;
    return new WitnessDisagreesError(`${words}: gift audit verify, with its checkpoint, tells more`, words);
  }
  return undefined;
}
