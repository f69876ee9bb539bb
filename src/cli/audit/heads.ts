/** The signed heads that commands hold a log against, and the keys that verify them. */
import {
  type HeadToCheck,
  type KeptHead,
  lastSignedHead,
  MalformedEvidenceError,
  type NoteVerifier,
  noteVerifier,
  signedWords,
  type VerifiersOf,
  type WitnessAddress,
  witnessClient,
  witnessWords,
  wordOf,
} from '../../ops/evidence/index.js';
import type { EventStore } from '../../ports/eventStore.js';
import { AlteredEventError } from '../../ports/unavailable.js';
import { nameOf, readInputText } from '../fileNames.js';
import { type CommandFailure, type Terminal, usageFailure, writeLines } from '../terminal.js';

const WITNESS_MS = 10_000;

/** @param files of the option --checkpoint @throws CommandFailure */
export async function keptHeads(terminal: Terminal, files: readonly string[]): Promise<readonly KeptHead[]> {
  const heads: KeptHead[] = [];
  for (const file of files)
    heads.push({
      from: nameOf(file),
      note: await readInputText(terminal, file).catch((error: CommandFailure) => {
        throw usageFailure(`--checkpoint: ${error.message}`);
      }),
    });
  return heads;
}

/** @param text of the option --key @throws CommandFailure */
export function givenVerifier(text: string): NoteVerifier {
  try {
    return noteVerifier(text);
  } catch (error) {
    if (error instanceof MalformedEvidenceError) throw usageFailure(`--key: ${error.message}`);
    throw error;
  }
}

/**
 * The heads of a log that the witnesses of SEAL_WITNESSES have cosigned last. A witness that does not answer is named
 * on standard error, and left out. So is a head that the log itself has not signed: it accuses the witness, not the
 * log.
 * @param log the log, whose heads name its origin
 */
export async function lastWords(
  { stderr, signal }: Terminal,
  addresses: readonly WitnessAddress[],
  log: Pick<EventStore, 'logId' | 'read'>,
  verifiersOf: VerifiersOf,
): Promise<readonly HeadToCheck[]> {
  if (addresses.length === 0) return [];
  const last = await lastSignedHead(log).catch((error: unknown) => {
    if (error instanceof MalformedEvidenceError || error instanceof AlteredEventError) return 'altered' as const;
    throw error;
  });
  // The verification itself names the altered head.
  if (last === 'altered')
    await writeLines(stderr, ['gift: witnesses are not asked: the last head of the log, which names it, was altered']);
  if (last === undefined || last === 'altered') return [];
  const { origin } = last;
  const words = await witnessWords(addresses.map(witnessClient), origin, verifiersOf, {
    timeoutMs: WITNESS_MS,
    signal,
  });
  for (const said of words) {
    const from = wordOf(said.witness);
    if (said.word === 'unsigned')
      await writeLines(stderr, [`gift: ${from} is left out: no known key of the log has signed it; ask that witness`]);
    else if (said.word === 'missing') await writeLines(stderr, [`gift: ${from} is missing: ${said.reason}`]);
  }
  return signedWords(words);
}
