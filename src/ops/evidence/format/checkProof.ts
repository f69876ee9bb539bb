/**
 * Verifies a proof bundle offline: from the keys that its reader trusts down to the shown parts of each event. The same
 * proofs are written in the form that checkers of others read (c2sp.org/tlog-proof@v1).
 */
import { cosignedAt, parseCheckpoint, type ParsedCheckpoint } from './checkpoint.js';
import { leafOfShown, type ShownData } from './eventLeaf.js';
import { encodeLeaf } from './leaf.js';
import { hashLeaf, type TreeHead, verifyInclusion } from './merkleTree.js';
import { keyName } from './noteKeys.js';
import { MalformedEvidenceError, UnprovenEventError, UntrustedNoteError } from './parsing.js';
import { parseBundle, type ProofBundle, type ProvenEvent } from './proofBundle.js';
import { type NoteVerifier, openNote } from './signedNote.js';

export interface TrustedKeys {
  /** Keys of the log, of which one must have signed the checkpoint. */
  readonly log: readonly NoteVerifier[];
  /** Keys of witnesses, each of which must have cosigned the checkpoint. */
  readonly witnesses: readonly NoteVerifier[];
}

/** What a file of proofs has proven, as plain JSON. */
interface CheckedProof {
  readonly checkpoint: {
    readonly origin: string;
    readonly size: number;
    /** Root hash of the tree, in base64. */
    readonly root: string;
    readonly signed_by: string;
    readonly cosigned: CheckedBundle['cosigned'];
  };
  readonly events: readonly (Pick<ProvenEvent, 'index' | 'id' | 'stream' | 'revision' | 'type' | 'at'> & {
    /** The data without the hidden fields; null: all fields are hidden. */
    readonly data: object | null;
    readonly metadata: object | null;
    /** Names of the hidden fields. */
    readonly not_shown: readonly string[];
  })[];
  /** How many events of each stream are missing before the latest one shown, a sentence each. */
  readonly missing_revisions: readonly string[];
}

/**
 * Checks the text of a file of proofs. `tlogProofs` makes each proof a file for the checkers of others.
 * @throws EvidenceError as `checkBundle`, and for a file of another format
 */
export function checkProof(
  text: string,
  keys: TrustedKeys,
  whole?: string,
): { readonly proof: CheckedProof; tlogProofs(): { readonly index: number; readonly text: string }[] } {
  const { checkpoint, signedBy, cosigned, events } = checkBundle(parseBundle(text), keys, whole);
  const { origin, size, root, note } = checkpoint;
  return {
    proof: {
      checkpoint: { origin, size, root: root.toString('base64'), signed_by: signedBy, cosigned },
      events: events.map(({ index, id, stream, revision, type, at, data, metadata }) => ({
        index,
        id,
        stream,
        revision,
        type,
        at,
        data: shownOf(data),
        metadata: 'hash' in metadata ? null : metadata.value,
        not_shown: hiddenIn(data),
      })),
      missing_revisions: missingRevisions(events),
    },
    tlogProofs: () =>
      events.map(({ index, inclusion }) => ({
        index,
        text: formatTlogProof({ index, inclusion, checkpoint: note }),
      })),
  };
}

function shownOf(data: ShownData): object | null {
  if ('hash' in data) return null;
  const values = new Map(data.shown.map(({ name, value }) => [name, value]));
  return Object.fromEntries(
    Object.entries(data.value).flatMap(([name, value]) =>
      values.has(name) ? [[name, values.get(name)]] : data.apart.includes(name) ? [] : [[name, value]],
    ),
  );
}

const hiddenIn = (data: ShownData): readonly string[] =>
  'hash' in data ? ['all'] : data.apart.filter((name) => !data.shown.some((field) => field.name === name));

function missingRevisions(events: readonly ProvenEvent[]): string[] {
  const streams = new Map<string, Set<number>>();
  for (const { stream, revision } of events)
    streams.set(stream, (streams.get(stream) ?? new Set<number>()).add(revision));
  return Array.from(streams).flatMap(([stream, revisions]) => {
    const missing = Math.max(...revisions) + 1 - revisions.size;
    return missing === 0 ? [] : [`${missing} earlier events of ${stream}`];
  });
}

interface CheckedBundle {
  readonly checkpoint: ParsedCheckpoint & { readonly note: string };
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
  return { checkpoint: { ...checkpoint, note }, signedBy: signer.name, cosigned, events };
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

export interface TlogProof {
  readonly index: number;
  readonly inclusion: readonly Uint8Array[];
  /** The checkpoint as a signed note. */
  readonly checkpoint: string;
}

const FIRST_LINE = 'c2sp.org/tlog-proof@v1';
const INDEX = 'index ';

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');

export function formatTlogProof({ index, inclusion, checkpoint }: TlogProof): string {
  return [FIRST_LINE, INDEX + index, ...inclusion.map(base64), '', checkpoint].join('\n');
}
