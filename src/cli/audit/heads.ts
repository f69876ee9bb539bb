/** The signed heads that commands hold a log against, and the keys that verify them. */
import { readFileSync } from 'node:fs';
import { headKeys } from '../../ops/evidence/headKeys.js';
import type { HeadToCheck, KeptHead, VerifiersOf } from '../../ops/evidence/headsToCheck.js';
import { leavesOf } from '../../ops/evidence/leaves.js';
import { lastSignedHead } from '../../ops/evidence/signedHeads.js';
import type { EventStore } from '../../ports/eventStore.js';
import { MalformedEvidenceError } from '../../runtime/evidence/errors.js';
import { type NoteVerifier, noteVerifier } from '../../runtime/evidence/signedNote.js';
import { type WitnessAddress, witnessClient } from '../../runtime/evidence/witnessClient.js';
import { type Terminal, usageFailure, writeLines } from '../terminal.js';

const WITNESS_MS = 10_000;

/** Without its rules no leaf is that of the log: a head, or a tile, tells that there were some. */
export const NO_TREE = leavesOf({ saltKey: '', apart: new Set() });

/** @param file of the option --checkpoint @throws CommandFailure */
export function keptHead(file: string): KeptHead {
  try {
    return { from: file, note: readFileSync(file, 'utf8') };
  } catch (error) {
    throw usageFailure(`--checkpoint ${file}: it can't be read (${(error as NodeJS.ErrnoException).code})`);
  }
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

/** @param keys texts of SEAL_KEY */
export function verifiersOf(keys: readonly string[], given: readonly NoteVerifier[] = []): VerifiersOf {
  const known = new Map<string, readonly NoteVerifier[]>();
  return (origin) => {
    const own = known.get(origin) ?? headKeys(keys, origin).verifiers;
    known.set(origin, own);
    const others = given.filter(({ name, keyId }) => name === origin && !own.some((one) => one.keyId === keyId));
    return [...own, ...others];
  };
}

/**
 * What the witnesses of SEAL_WITNESSES have cosigned last of a log. One that does not answer is named, and left out.
 * @param log whose heads name its origin
 */
export async function lastWords(
  { stderr, signal }: Terminal,
  addresses: readonly WitnessAddress[],
  log: Pick<EventStore, 'logId' | 'read'>,
): Promise<readonly HeadToCheck[]> {
  const origin = addresses.length === 0 ? undefined : (await lastSignedHead(log))?.origin;
  if (origin === undefined) return [];
  const heads: HeadToCheck[] = [];
  for (const client of addresses.map(witnessClient)) {
    const word = await client.latest(origin, { timeoutMs: WITNESS_MS, signal });
    const from = `the last word of the witness ${client.name}`;
    if (word.outcome === 'cosigned') heads.push({ ...word.checkpoint, from });
    else if (word.outcome === 'failed') await writeLines(stderr, [`gift: ${from} is missing: ${word.reason}`]);
  }
  return heads;
}
