/**
 * The signed heads of a log, in its stream `treeHeads-{log id}`, and the keys that sign them (SEAL_KEY). The event of a
 * head is appended at the expected revision before the head is published. So one of two processes signs, and a process
 * that dies in between has published nothing.
 */
import { hkdfSync } from 'node:crypto';
import { type ContinuedHead, type TreeHeadSigned, treeHeadStream } from '../../../domain/treeHeads.js';
import type { EventStore, Position, RecordedEvent } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { lastEvent } from '../../../runtime/log/lastEvent.js';
import type { AppendTreeEvent } from '../tree/leaves.js';
import { formatCheckpoint, parseCheckpoint, type ParsedCheckpoint } from '../format/checkpoint.js';
import type { TreeHead } from '../format/merkleTree.js';
import { ED25519_NOTE, formatSignerKey, formatVerifierKey, parseSignerKey } from '../format/noteKeys.js';
import { MalformedEvidenceError, UntrustedNoteError } from '../format/parsing.js';
import {
  type NoteSigner,
  noteSigner,
  type NoteVerifier,
  noteVerifier,
  openNote,
  parseNote,
  signNote,
} from '../format/signedNote.js';
import { LogAlteredError } from '../tree/logTree.js';

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
  readonly append: AppendTreeEvent;
}

/**
 * Signs a head that continues `last`, which the caller has made sure of, and appends it to the log.
 * @param continues only for the log's first head
 * @throws ConflictError where another process has signed a head; UnavailableError
 */
export async function signHead(
  { logId }: Pick<EventStore, 'logId'>,
  { keys, host, append }: HeadSigning,
  { size, root, position }: TreeHead & { readonly position: Position },
  last: SignedHead | undefined,
  continues?: ContinuedHead,
): Promise<SignedHead> {
  const origin = last?.origin ?? originOf(host, logId);
  const note = signNote(formatCheckpoint({ origin, size, root }), headKeys(keys, origin).signers);
  const data = { note, position, ...(continues === undefined ? {} : { continues }) };
  const stream = treeHeadStream(logId);
  return headOf(await append(stream, { type: 'TreeHeadSigned', data }, last?.revision ?? 'none'));
}

/** Permanent name of a log: `host/log/{log id}`. It is also the name of the log's keys. */
export const originOf = (host: string, logId: string): string => `${host}/log/${logId}`;

interface HeadKeys {
  readonly signers: readonly NoteSigner[];
  readonly verifiers: readonly NoteVerifier[];
  /** Public keys as text, for parties that verify: `name+hash+base64`. */
  readonly verifierKeys: readonly string[];
}

/** Ed25519 keys, made of the texts of SEAL_KEY by HKDF-SHA-256 (RFC 5869). All of them sign. */
export function headKeys(texts: readonly string[], origin: string): HeadKeys {
  const signerKeys = texts.map((text) =>
    formatSignerKey(origin, ED25519_NOTE, Buffer.from(hkdfSync('sha256', text, '', 'gift-commerce seal key', 32))),
  );
  const verifierKeys = signerKeys.map((key) => formatVerifierKey(parseSignerKey(key).key));
  return { signers: signerKeys.map(noteSigner), verifiers: verifierKeys.map(noteVerifier), verifierKeys };
}

/** Known verifiers of an origin. Where an origin has none, none of its signatures is verified. */
export type VerifiersOf = (origin: string) => readonly NoteVerifier[];

/**
 * Verifiers made from SEAL_KEY, and the `given` ones of the same origin.
 * @param keys texts of SEAL_KEY
 */
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
 * The verifier keys of a log, as text: `name+hash+base64`.
 * @param keys texts of SEAL_KEY
 * @returns `undefined` where nothing is signed yet, so that the log has no name
 * @throws UnavailableError, MalformedEvidenceError
 */
export async function verifierKeys(
  log: Pick<EventStore, 'logId' | 'read'>,
  keys: readonly string[],
): Promise<readonly string[] | undefined> {
  const head = await lastSignedHead(log);
  return head === undefined ? undefined : headKeys(keys, head.origin).verifierKeys;
}
