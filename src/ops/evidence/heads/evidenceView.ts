/** The latest signed heads of a log and their witnesses, from what is stored (docs/support.md#evidence-at-a-glance). */
import { type LogVerified, verificationStream } from '../../../domain/logVerified.js';
import { treeHeadStream, type TreeHeadSigned } from '../../../domain/treeHeads.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { lastEvent } from '../../../runtime/log/lastEvent.js';
import { cosignatureVerifier, cosignedAt, parseCheckpoint } from '../format/checkpoint.js';
import { keyName } from '../format/noteKeys.js';
import { unlessMalformed } from '../format/parsing.js';
import { parseNote } from '../format/signedNote.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { firstUncovered, uncosignedIn } from './headStatus.js';
import { headOf } from './signedHeads.js';

/** A signed head. Whether its signature is valid, a verification of the log tells. */
interface HeadView {
  /** When it was signed: ISO 8601, UTC. */
  readonly at: string;
  /** Number of events; null where what is stored is not a head. */
  readonly size: number | null;
  /** Root of the tree over them, in base64; null as `size`. */
  readonly root: string | null;
  /** Position of the last of these events. */
  readonly position: string;
  /** Whether it is the one at `/checkpoint`: its cosignatures are stored, those of earlier heads are not. */
  readonly published: boolean;
  /** Witnesses of SEAL_WITNESSES whose cosignature of this head is stored and valid. */
  readonly cosigned_by: readonly Cosigned[];
}

interface Cosigned {
  readonly witness: string;
  readonly at: string;
}

export interface EvidenceView {
  /** Name of the log in its heads; null: nothing was signed yet. */
  readonly origin: string | null;
  /** The latest first. */
  readonly heads: readonly HeadView[];
  /** Witnesses without a cosignature of the published head. */
  readonly not_cosigned_by: readonly string[];
  /** Time of the first event that no head covers; null: there is none but the tree's own. */
  readonly uncovered_since: string | null;
  /** The last verification of the whole log that found it as it was signed; null: none is recorded. */
  readonly last_verified: VerificationView | null;
}

interface VerificationView extends Pick<LogVerified['data'], 'events'> {
  /** When it ended: ISO 8601, UTC. */
  readonly at: string;
  readonly by: string | null;
}

const MOST_HEADS = 20;

/** @param witnesses keys of the cosignatures, as text @throws UnavailableError; the file system's errors */
export async function evidenceView(
  events: Pick<EventStore, 'logId' | 'read' | 'readAll'>,
  folder: Pick<TileFolder, 'head'>,
  witnesses: readonly string[],
): Promise<EvidenceView> {
  const stream = treeHeadStream(events.logId);
  const last = await lastEvent(events, stream);
  const found =
    last === undefined ? [] : await events.read(stream, { from: Math.max(0, last.revision - MOST_HEADS + 1) });
  const note = await folder.head();
  // What was altered, so that it is not a head, has no size: a verification names it.
  const published = note === undefined ? undefined : unlessMalformed(() => cosignedHead(note, witnesses));
  const heads = found.map((event) => ({ event, head: unlessMalformed(() => headOf(event)) })).toReversed();
  return {
    origin: heads.find(({ head }) => head !== undefined)?.head?.origin ?? null,
    heads: heads.map(({ event, head }) => {
      const size = head?.size ?? null;
      const root = head?.root.toString('base64') ?? null;
      const isPublished = size !== null && published?.size === size && published.root === root;
      return {
        at: event.at,
        size,
        root,
        position: (event.data as TreeHeadSigned['data']).position,
        published: isPublished,
        cosigned_by: isPublished ? published.cosigned : [],
      };
    }),
    not_cosigned_by: note === undefined ? [] : uncosignedIn(note, witnesses),
    uncovered_since: (await firstUncovered(events, last)) ?? null,
    last_verified: await lastVerified(events),
  };
}

async function lastVerified(events: Pick<EventStore, 'logId' | 'read'>): Promise<VerificationView | null> {
  const last = await lastEvent(events, verificationStream(events.logId));
  if (last === undefined) return null;
  return { at: last.at, by: last.metadata.by.user ?? null, events: (last.data as LogVerified['data']).events };
}

function cosignedHead(
  note: string,
  witnesses: readonly string[],
): { readonly size: number; readonly root: string; readonly cosigned: readonly Cosigned[] } {
  const { body, signatures } = parseNote(note);
  const { size, root } = parseCheckpoint(body);
  const cosigned = witnesses.map(cosignatureVerifier).flatMap((verifier) => {
    const found = signatures.find((one) => keyName(one) === keyName(verifier));
    return found === undefined || !verifier.verify(body, found.signature)
      ? []
      : [{ witness: verifier.name, at: new Date(cosignedAt(found) * 1_000).toISOString() }];
  });
  return { size, root: root.toString('base64'), cosigned };
}
