/**
 * The signed heads of a log, in its stream `treeHeads-{log id}`. A head is claimed by its event, at the expected
 * revision, before it is shown to anybody: of two processes one signs, and one that dies in between has shown nothing.
 */
import { randomUUID } from 'node:crypto';
import { recordable } from '../../commands/context.js';
import { append } from '../../commands/transact.js';
import { type ContinuedHead, treeHeadStream, type TreeHeadSigned } from '../../domain/treeHeads.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { AlteredEventError } from '../../ports/unavailable.js';
import { formatCheckpoint, type ParsedCheckpoint, parseCheckpoint } from '../../runtime/evidence/checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../../runtime/evidence/errors.js';
import type { TreeHead } from '../../runtime/evidence/merkleTree.js';
import { openNote, parseNote, signNote } from '../../runtime/evidence/signedNote.js';
import { lastEvent } from '../../runtime/log/lastEvent.js';
import { LogAlteredError } from '../../runtime/tree/logAltered.js';
import { headKeys, originOf } from './headKeys.js';
import { TREE_USER } from './treeUser.js';

export interface SignedHead extends ParsedCheckpoint {
  /** The signed note. */
  readonly note: string;
  readonly revision: number;
  /** Milliseconds since 1970. */
  readonly at: number;
}

/** Without looking at its signatures. @throws MalformedEvidenceError */
export function headOf({ data, revision, at }: RecordedEvent): SignedHead {
  const note = (data as Partial<TreeHeadSigned['data']> | null)?.note ?? '';
  return { ...parseCheckpoint(parseNote(note).body), note, revision, at: Date.parse(at) };
}

/** `undefined`: nothing was signed yet. @throws UnavailableError, MalformedEvidenceError */
export async function lastSignedHead(events: Pick<EventStore, 'logId' | 'read'>): Promise<SignedHead | undefined> {
  const last = await lastEvent(events, treeHeadStream(events.logId));
  return last === undefined ? undefined : headOf(last);
}

/**
 * The last head, signed by one of `keys`: who can write to the log alone can overwrite a head, but not sign it.
 * @throws LogAlteredError where none of them signed it, or not this text, or it is no head; UnavailableError
 */
export async function lastTrustedHead(
  events: Pick<EventStore, 'logId' | 'read'>,
  keys: readonly string[],
): Promise<SignedHead | undefined> {
  const last = await lastSignedHead(events).catch((cause: unknown) => {
    if (!(cause instanceof MalformedEvidenceError || cause instanceof AlteredEventError)) throw cause;
    throw new LogAlteredError("the log's last signed head is none", { cause });
  });
  if (last === undefined) return undefined;
  // A key signs for many logs, as for the one that this was copied from.
  if (!last.origin.endsWith(originOf('', events.logId)))
    throw new LogAlteredError("the log's last signed head is one of another log");
  try {
    openNote(last.note, headKeys(keys, last.origin).verifiers);
  } catch (cause) {
    if (!(cause instanceof UntrustedNoteError)) throw cause;
    throw new LogAlteredError("the log's last head has no valid signature of a key of SEAL_KEY", { cause });
  }
  return last;
}

export interface HeadSigning {
  /** Texts of SEAL_KEY. */
  readonly keys: readonly string[];
  /** Of the origin, for the log's first head: it never changes later. */
  readonly host: string;
  /** ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
}

/**
 * Signs a head that continues `last`, which the caller has made sure of, and claims it.
 * @param continues for the log's first head
 * @throws ConflictError where another process has signed one; UnavailableError
 */
export async function signHead(
  events: EventStore,
  { keys, host, now }: HeadSigning,
  { size, root, position }: TreeHead & { readonly position: Position },
  last: SignedHead | undefined,
  continues?: ContinuedHead,
): Promise<SignedHead> {
  const origin = last?.origin ?? originOf(host, events.logId);
  const note = signNote(formatCheckpoint({ origin, size, root }), headKeys(keys, origin).signers);
  const signed: TreeHeadSigned = {
    type: 'TreeHeadSigned',
    data: { note, position, ...(continues === undefined ? {} : { continues }) },
  };
  const commandId = randomUUID();
  const event = recordable([signed], { commandId, correlationId: commandId, by: TREE_USER, now: now() });
  const [stored] = await append(events, treeHeadStream(events.logId), event, last?.revision ?? 'none');
  return headOf(stored as RecordedEvent);
}
