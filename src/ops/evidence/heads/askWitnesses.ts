/** Requests cosignatures of a signed head from the witnesses of a log. */
import { collectCosignatures } from '../witness/cosignatures.js';
import { type HashReader, proveConsistency } from '../format/treeProofs.js';
import type { Cosigning, WitnessClient } from '../witness/witnessClient.js';
import { ToldError } from '../../../runtime/supervision/followers.js';
import type { VerifiersOf } from './headKeys.js';
import type { SignedHead } from './signedHeads.js';
import { signedWords, type WitnessedHead, type WitnessWord, witnessWords } from './witnessWords.js';

/** Milliseconds that a witness has to answer each of two requests: to cosign a head, and for its latest head. */
export const WITNESS_MS = 5_000;

/** A witness claims to have cosigned a head that this log does not continue, but does not show that head. */
export class WitnessDisagreesError extends ToldError {
  override readonly name = 'WitnessDisagreesError';
}

/** A witness refuses a head, but shows nothing that contradicts the log. */
export class WitnessRefusesError extends ToldError {
  override readonly name = 'WitnessRefusesError';
}

export interface Asked {
  /** The head, with the cosignatures that arrived in time. */
  readonly note: string;
  /** Latest heads cosigned by the witnesses that refuse this one: the tree must continue each of them. */
  readonly against: readonly WitnessedHead[];
  /** Error about a refusing witness, for the case that the heads in `against` do not contradict the log. */
  readonly trouble: ToldError | undefined;
}

/**
 * Requests cosignatures of a head. A witness that does not answer is left out for this head.
 * @param hashes reader of a tree of at least the head's size
 * @throws the errors of `hashes`
 */
export async function askWitnesses(
  witnesses: readonly WitnessClient[],
  head: SignedHead,
  hashes: HashReader,
  verifiersOf: VerifiersOf,
  signal: AbortSignal,
): Promise<Asked> {
  const patience = { timeoutMs: WITNESS_MS, signal };
  const { note, outcomes } = await collectCosignatures(
    witnesses,
    { ...head, consistency: (from) => proveConsistency(hashes, from, head.size) },
    patience,
  );
  const refusing = witnesses.flatMap((client, at) => {
    const said = outcomes[at] as Cosigning;
    return said.outcome === 'ahead' || said.outcome === 'inconsistent' ? [{ client, size: said.size }] : [];
  });
  const clients = refusing.map(({ client }) => client);
  const words = await witnessWords(clients, head.origin, verifiersOf, patience);
  const troubles = refusing.map(({ client, size }, at) =>
    troubleOf(words[at] as WitnessWord, `the witness ${client.name} has cosigned ${size} events`, head),
  );
  const trouble = troubles.find((one) => one instanceof WitnessDisagreesError) ?? troubles[0];
  return { note, against: signedWords(words), trouble };
}

function troubleOf({ word }: WitnessWord, cosigned: string, { size }: SignedHead): ToldError {
  if (word === 'signed' || word === 'unsigned') {
    const words = `${cosigned}, refuses this log of ${size}, and shows nothing that a key of SEAL_KEY has signed against it`;
    return new WitnessRefusesError(`${words}: ask that witness`, words);
  }
  const words = `${cosigned}, which this log of ${size} does not continue, and does not show them`;
  return new WitnessDisagreesError(`${words}: gift audit verify, with its checkpoint, tells more`, words);
}
