/** Verifies a proof bundle offline: from the keys that its reader trusts down to the shown parts of each event. */
import { type ParsedCheckpoint, parseCheckpoint } from './checkpoint.js';
import { cosignedAt } from './cosignature.js';
import { MalformedEvidenceError, UnprovenEventError, UntrustedNoteError } from './errors.js';
import { leafOfShown } from './eventLeaf.js';
import { encodeLeaf } from './leaf.js';
import { hashLeaf, type TreeHead, verifyInclusion } from './merkleTree.js';
import { keyName } from './noteKeys.js';
import type { ProofBundle, ProvenEvent } from './proofBundle.js';
import { type NoteVerifier, openNote } from './signedNote.js';

export interface TrustedKeys {
  /** Keys of the log, of which one must have signed the checkpoint. */
  readonly log: readonly NoteVerifier[];
  /** Keys of witnesses, each of which must have cosigned the checkpoint. */
  readonly witnesses: readonly NoteVerifier[];
}

export interface CheckedBundle {
  readonly checkpoint: ParsedCheckpoint;
  readonly signedBy: string;
  readonly cosigned: readonly { readonly name: string; /** ISO 8601, UTC. */ readonly at: string }[];
  readonly events: readonly ProvenEvent[];
}

/**
 * @param whole name of a stream of which the bundle must have every event up to the latest one shown
 * @throws MalformedEvidenceError, also for a bundle without events; UntrustedNoteError for a checkpoint without the
 * signatures that are needed; UnprovenEventError for the first event that is not in the log as it is shown, or that is
 * missing of `whole`
 */
export function checkBundle(
  { checkpoint: note, events }: ProofBundle,
  keys: TrustedKeys,
  whole?: string,
): CheckedBundle {
  if (events.length === 0) throw new MalformedEvidenceError('it has no events');
  const { body, signatures } = openNote(note, [...keys.log, ...keys.witnesses]);
  const checkpoint = parseCheckpoint(body);
  const valid = new Map(signatures.map((signature) => [keyName(signature), signature]));
  const signer = keys.log.find((key) => valid.has(keyName(key)));
  if (signer === undefined) throw new UntrustedNoteError("the log's key has not signed this checkpoint");
  // A key of one log proves nothing about another log.
  if (signer.name !== checkpoint.origin)
    throw new UntrustedNoteError(`the checkpoint is of ${checkpoint.origin}, the key of ${signer.name}`);
  const cosigned = keys.witnesses.map((witness) => {
    const signature = valid.get(keyName(witness));
    if (signature === undefined) throw new UntrustedNoteError(`${witness.name} has not cosigned this checkpoint`);
    return { name: witness.name, at: new Date(cosignedAt(signature) * 1_000).toISOString() };
  });
  let before = -1;
  for (const event of events) {
    if (event.index <= before) throw new MalformedEvidenceError('the events do not stand in the order of the log');
    before = event.index;
    checkEvent(event, checkpoint);
  }
  if (whole !== undefined) refuseUnlessWhole(whole, events);
  return { checkpoint, signedBy: signer.name, cosigned, events };
}

function checkEvent(event: ProvenEvent, checkpoint: ParsedCheckpoint): void {
  if (isInLog(event, checkpoint)) return;
  throw new UnprovenEventError(
    `event ${event.index} (${event.type}, revision ${event.revision} of ${event.stream}) is not in the log as it is shown`,
  );
}

function refuseUnlessWhole(stream: string, events: readonly ProvenEvent[]): void {
  const revisions = events.filter((event) => event.stream === stream).map(({ revision }) => revision);
  const missing = revisions.length === 0 ? 0 : revisions.findIndex((revision, at) => revision !== at);
  if (missing >= 0) throw new UnprovenEventError(`revision ${missing} of ${stream} is not in it`);
}

/** Whether the tree with this head has the event as it is shown. @throws MalformedEvidenceError */
export function isInLog(event: ProvenEvent, head: TreeHead): boolean {
  const leaf = leafOfShown(event, event);
  const { index, inclusion } = event;
  return leaf !== undefined && verifyInclusion(inclusion, { index, hash: hashLeaf(encodeLeaf(leaf)) }, head);
}
