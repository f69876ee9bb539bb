/** Latest heads of a log that witnesses have cosigned, and whether they count. */
import type { Patience, WitnessClient } from '../witness/witnessClient.js';
import type { VerifiersOf } from './headKeys.js';
import { type HeadToCheck, headToCheck, type KeptHead } from './headsToCheck.js';

export type WitnessedHead = HeadToCheck & KeptHead;

/** Answer of a witness. `witness` is the name of its key. */
export type WitnessWord = { readonly witness: string } & (
  | { readonly word: 'signed'; readonly head: WitnessedHead }
  /** No known key of the log has signed the witness's head: it accuses the witness, and not the log. */
  | { readonly word: 'unsigned' }
  | { readonly word: 'nothing' }
  | { readonly word: 'missing'; readonly reason: string }
);

/** Answers in the order of the witnesses, which are queried concurrently, and within the time. */
export async function witnessWords(
  witnesses: readonly WitnessClient[],
  origin: string,
  verifiersOf: VerifiersOf,
  patience: Patience,
): Promise<readonly WitnessWord[]> {
  return Promise.all(
    witnesses.map(async (client): Promise<WitnessWord> => {
      const latest = await client.latest(origin, patience);
      const witness = client.name;
      if (latest.outcome === 'failed') return { witness, word: 'missing', reason: latest.reason };
      if (latest.outcome === 'nothing') return { witness, word: 'nothing' };
      const kept = { from: wordOf(witness), note: latest.note };
      const head = headToCheck(kept, verifiersOf);
      const counts = head.fault === undefined && head.verified !== false;
      return counts ? { witness, word: 'signed', head: { ...kept, ...head } } : { witness, word: 'unsigned' };
    }),
  );
}

/** Description of a witness's latest head. */
export const wordOf = (witness: string): string => `the last word of the witness ${witness}`;

export const signedWords = (words: readonly WitnessWord[]): readonly WitnessedHead[] =>
  words.flatMap((said) => (said.word === 'signed' ? [said.head] : []));
