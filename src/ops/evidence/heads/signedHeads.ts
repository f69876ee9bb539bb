/**
 * The signed heads of a log, in its stream `treeHeads-{log id}`. The event of a head is appended at the expected
 * revision before the head is published. So one of two processes signs, and a process that dies in between has
 * published nothing.
 */
import { randomUUID } from 'node:crypto';
import { recordable } from '../../../commands/context.js';
import { append } from '../../../commands/transact.js';
import { type ContinuedHead, treeHeadStream, type TreeHeadSigned } from '../../../domain/treeHeads.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { formatCheckpoint, type ParsedCheckpoint, parseCheckpoint } from '../format/checkpoint.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../format/errors.js';
import type { TreeHead } from '../format/merkleTree.js';
import { openNote, parseNote, signNote } from '../format/signedNote.js';
import { lastEvent } from '../../../runtime/log/lastEvent.js';
import { LogAlteredError } from '../tree/logAltered.js';
import { headKeys, originOf } from './headKeys.js';
import { TREE_USER } from '../tree/treeUser.js';

export interface SignedHead extends ParsedCheckpoint {
  /** The head as a signed note. */
  readonly note: string;
  readonly revision: number;
  /** Time of the head, in milliseconds since 1970. */
  readonly at: number;
}

/** The head in an event, whose signatures are not verified. @throws MalformedEvidenceError */
export function headOf({ data, revision, at }: RecordedEvent): SignedHead {
  const note = (data as Partial<TreeHeadSigned['data']> | null)?.note ?? '';
  return { ...parseCheckpoint(parseNote(note).body), note, revision, at: Date.parse(at) };
}

/**
 * The last head, whose signatures are not verified; `undefined` where nothing was signed yet.
 * @throws UnavailableError, MalformedEvidenceError
 */
export async function lastSignedHead(events: Pick<EventStore, 'logId' | 'read'>): Promise<SignedHead | undefined> {
  const last = await lastEvent(events, treeHeadStream(events.logId));
  return last === undefined ? undefined : headOf(last);
}

/**
 * The last head, signed by one of `keys`: a party that can only write to the log can overwrite a head, but not sign it.
 * @throws LogAlteredError where none of the keys signed it, its text was changed, or it is no head of this log;
 * UnavailableError
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
  // The origin is checked, since a key signs for several logs, such as the one that this log was copied from.
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
  /** Host in the origin of the log's first head; the origin never changes later. */
  readonly host: string;
  /** Present time: ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
}

/**
 * Signs a head that continues `last`, which the caller has made sure of, and appends it to the log.
 * @param continues only for the log's first head
 * @throws ConflictError where another process has signed a head; UnavailableError
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
