/**
 * Heads that witnesses have cosigned, and this log has signed: its tree must continue each. A head that it does not
 * continue is stored in SEAL_DIR, and counts even if its witness is unreachable.
 */
import type { EventStore } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { PublicReasonError } from '../../../runtime/supervision/followers.js';
import { type HashReader, proveConsistency } from '../format/merkleTree.js';
import { MalformedEvidenceError } from '../format/parsing.js';
import { LogAlteredError, type LogTree } from '../tree/logTree.js';
import type { TileFolder } from '../tree/tileFolder.js';
import {
  collectCosignatures,
  type Cosigning,
  type Patience,
  type WitnessAddress,
  witnessClient,
  type WitnessClient,
} from '../witness/witnessClient.js';
import { headToCheck, type HeadToCheck, type StoredHead } from './headsToCheck.js';
import { lastSignedHead, originOf, type SignedHead, type VerifiersOf } from './signedHeads.js';

const SHOWN = 'a head that a witness has shown';

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
  return [...signedWords(words), ...(await storedHeads(folder, verifiersOf))];
}

async function storedHeads(
  folder: Pick<TileFolder, 'witnessed'>,
  verifiersOf: VerifiersOf,
): Promise<readonly WitnessedHead[]> {
  const note = await folder.witnessed();
  if (note === undefined) return [];
  try {
    const head = headToCheck({ from: SHOWN, note }, verifiersOf);
    return head.verified === true ? [{ ...head, note }] : [];
  } catch (cause) {
    if (!(cause instanceof MalformedEvidenceError)) throw cause;
    throw new LogAlteredError('the file witnessed in SEAL_DIR is not a signed head', { cause });
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
  if (!heads.some(({ from }) => from === SHOWN)) return;
  mayWrite();
  await folder.keepWitnessed(undefined);
}

type WitnessedHead = HeadToCheck & StoredHead;

/** Answer of a witness. `witness` is the name of its key. */
type WitnessWord = { readonly witness: string } & (
  | { readonly word: 'signed'; readonly head: WitnessedHead }
  /** No known key of the log has signed the witness's head: it accuses the witness, and not the log. */
  | { readonly word: 'unsigned' }
  | { readonly word: 'nothing' }
  | { readonly word: 'missing'; readonly reason: string }
);

/** Answers in the order of the witnesses, which are queried concurrently, and within the time. */
async function witnessWords(
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
      const shown = { from: wordOf(witness), note: latest.note };
      const head = headToCheck(shown, verifiersOf);
      const counts = head.fault === undefined && head.verified !== false;
      return counts ? { witness, word: 'signed', head: { ...shown, ...head } } : { witness, word: 'unsigned' };
    }),
  );
}

/** Description of a witness's latest head. */
const wordOf = (witness: string): string => `the last word of the witness ${witness}`;

const signedWords = (words: readonly WitnessWord[]): readonly WitnessedHead[] =>
  words.flatMap((said) => (said.word === 'signed' ? [said.head] : []));

/** Milliseconds that a witness has to answer each of two requests: to cosign a head, and for its latest head. */
const WITNESS_MS = 5_000;

/** A witness claims to have cosigned a head that this log does not continue, but does not show that head. */
class WitnessDisagreesError extends PublicReasonError {
  override readonly name = 'WitnessDisagreesError';
}

/** A witness refuses a head, but shows nothing that contradicts the log. */
class WitnessRefusesError extends PublicReasonError {
  override readonly name = 'WitnessRefusesError';
}

export interface Requested {
  /** The head, with the cosignatures that arrived in time. */
  readonly note: string;
  /** Latest heads cosigned by the witnesses that refuse this one: the tree must continue each of them. */
  readonly against: readonly WitnessedHead[];
  /** Error about a refusing witness, for the case that the heads in `against` do not contradict the log. */
  readonly trouble: PublicReasonError | undefined;
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
): Promise<Requested> {
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

function troubleOf({ word }: WitnessWord, cosigned: string, { size }: SignedHead): PublicReasonError {
  if (word === 'signed' || word === 'unsigned') {
    const words = `${cosigned}, refuses this log of ${size}, and shows nothing that a key of SEAL_KEY has signed against it`;
    return new WitnessRefusesError(`${words}: ask that witness`, words);
  }
  const words = `${cosigned}, which this log of ${size} does not continue, and does not show them`;
  return new WitnessDisagreesError(`${words}: gift audit verify, with its checkpoint, tells more`, words);
}

export interface WitnessesToAsk {
  readonly addresses: readonly WitnessAddress[];
  /** Id under which the witnesses know the log, where it is another one than its own. */
  readonly logId?: string;
  /** Host in the origin of a log without a head: its heads may have been cut off. */
  readonly host: string;
  /** Called where the latest head of a witness is left out. */
  onMissing(message: string): void;
}

/** Milliseconds that each witness has to tell a verifier its latest head. */
const VERIFIER_MS = 10_000;

/**
 * The heads of a log that witnesses have cosigned last. A witness that does not answer is left out. So is a head that
 * the log itself has not signed: it accuses the witness, not the log.
 * @throws UnavailableError
 */
export async function latestWitnessed(
  { addresses, logId, host, onMissing }: WitnessesToAsk,
  stored: Pick<EventStore, 'logId' | 'read'>,
  verifiersOf: VerifiersOf,
  signal: AbortSignal | undefined,
): Promise<readonly WitnessedHead[]> {
  if (addresses.length === 0) return [];
  const log = logId === undefined ? stored : { logId, read: stored.read };
  const last = await lastSignedHead(log).catch((error: unknown) => {
    if (error instanceof MalformedEvidenceError || error instanceof AlteredEventError) return 'altered' as const;
    throw error;
  });
  // The verification itself names the altered head.
  if (last === 'altered') onMissing('witnesses are not asked: the last head of the log, which names it, was altered');
  if (last === 'altered') return [];
  const patience = { timeoutMs: VERIFIER_MS, signal };
  const origin = last?.origin ?? originOf(host, log.logId);
  const words = await witnessWords(addresses.map(witnessClient), origin, verifiersOf, patience);
  for (const said of words) {
    const from = wordOf(said.witness);
    if (said.word === 'unsigned')
      onMissing(`${from} is left out: no known key of the log has signed it; ask that witness`);
    else if (said.word === 'missing') onMissing(`${from} is missing: ${said.reason}`);
  }
  return signedWords(words);
}
