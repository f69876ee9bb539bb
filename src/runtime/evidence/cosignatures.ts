/** Asks all witnesses of a log at once. */
import { formatSignature } from './signedNote.js';
import type { Cosigning, Patience, SignedCheckpoint, WitnessClient } from './witnessClient.js';

export interface Cosigned {
  /** The checkpoint with the cosignatures of those that gave one, in the order of the witnesses. */
  readonly note: string;
  /** What became of each. */
  readonly outcomes: readonly Cosigning[];
}

/** Within the time, whatever witnesses do. @throws the errors of `checkpoint.consistency` */
export async function collectCosignatures(
  witnesses: readonly WitnessClient[],
  checkpoint: SignedCheckpoint,
  patience: Patience,
): Promise<Cosigned> {
  const outcomes = await Promise.all(witnesses.map((witness) => witness.cosign(checkpoint, patience)));
  const lines = outcomes.map((one) => (one.outcome === 'cosigned' ? formatSignature(one.signature) : ''));
  return { note: checkpoint.note + lines.join(''), outcomes };
}
