/**
 * Heads that witnesses have cosigned and this log has signed: its tree must continue each. A head that it does not
 * continue is stored in SEAL_DIR, and counts even if its witness is unreachable.
 */
import { MalformedEvidenceError } from '../format/errors.js';
import type { WitnessClient } from '../witness/witnessClient.js';
import { LogAlteredError } from '../tree/logAltered.js';
import type { LogTree } from '../tree/logTree.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { WITNESS_MS } from './askWitnesses.js';
import type { VerifiersOf } from './headKeys.js';
import { headToCheck } from './headsToCheck.js';
import { signedWords, type WitnessedHead, witnessWords } from './witnessWords.js';

const KEPT = 'a head that a witness has shown';

/**
 * Heads that witnesses show in time, and the stored one.
 * @throws LogAlteredError where the stored head is malformed; the file system's errors
 */
export async function witnessedHeads(
  witnesses: readonly WitnessClient[],
  folder: Pick<TileFolder, 'witnessed'>,
  origin: string,
  verifiersOf: VerifiersOf,
  signal: AbortSignal,
): Promise<readonly WitnessedHead[]> {
  const words = await witnessWords(witnesses, origin, verifiersOf, { timeoutMs: WITNESS_MS, signal });
  return [...signedWords(words), ...(await keptHeads(folder, verifiersOf))];
}

async function keptHeads(
  folder: Pick<TileFolder, 'witnessed'>,
  verifiersOf: VerifiersOf,
): Promise<readonly WitnessedHead[]> {
  const note = await folder.witnessed();
  if (note === undefined) return [];
  try {
    const head = headToCheck({ from: KEPT, note }, verifiersOf);
    return head.verified === true ? [{ ...head, note }] : [];
  } catch (cause) {
    if (!(cause instanceof MalformedEvidenceError)) throw cause;
    throw new LogAlteredError('the file witnessed in SEAL_DIR is no signed head', { cause });
  }
}

/**
 * Checks that the tree continues each head. A head that it does not continue is stored in the folder.
 * @param tree read to the log's end after the heads were received
 * @param mayWrite throws where another process may keep the folder now
 * @throws LogAlteredError; SpoiltTilesError, UnavailableError, the file system's errors
 */
export async function holdAgainst(
  heads: readonly WitnessedHead[],
  tree: Pick<LogTree, 'size' | 'continues'>,
  folder: Pick<TileFolder, 'keepWitnessed'>,
  mayWrite: () => void,
  signal: AbortSignal,
): Promise<void> {
  for (const head of heads) {
    if (await tree.continues(head, signal)) continue;
    mayWrite();
    await folder.keepWitnessed(head.note);
    throw new LogAlteredError(
      `${head.from} is of ${head.size} events, and signed by this log, too, which has ${tree.size} and does not continue it`,
    );
  }
  if (!heads.some(({ from }) => from === KEPT)) return;
  mayWrite();
  await folder.keepWitnessed(undefined);
}
