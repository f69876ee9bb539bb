/** Requests cosignatures from all witnesses of a log concurrently. */
import { formatSignature } from '../format/signedNote.js';
import type { Cosigning, Patience, SignedCheckpoint, WitnessClient } from './witnessClient.js';

export interface Cosigned {
  /** The checkpoint with the cosignatures received, in the order of the witnesses. */
  readonly note: string;
  /** The outcome of each witness' request, in the order of the witnesses. */
  readonly outcomes: readonly Cosigning[];
}

/** Resolves within the timeout, even if witnesses do not answer. @throws the errors of `checkpoint.consistency` */
export async function collectCosignatures(
  witnesses: readonly WitnessClient[],
  checkpoint: SignedCheckpoint,
  patience: Patience,
): Promise<Cosigned> {
  const outcomes = await Promise.all(witnesses.map((witness) => witness.cosign(checkpoint, patience)));
  const lines = outcomes.map((one) => (one.outcome === 'cosigned' ? formatSignature(one.signature) : ''));
  return { note: checkpoint.note + lines.join(''), outcomes };
}
