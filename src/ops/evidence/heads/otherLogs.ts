/**
 * A log that was copied or restored has the events of another log, and an id of its own. Its first head names the last
 * head of that other log (docs/evidence.md#copies-and-backups). SEAL_DIR holds heads of other logs alongside its own.
 */
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { orMissing } from '../../../lib/files/orMissing.js';
import { type LogRestored, RESTORED_STREAM } from '../../../domain/restored.js';
import { type ContinuedHead, type TreeHeadSigned, treeHeadStream } from '../../../domain/treeHeads.js';
import type { EventStore, RecordedEvent } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { lastEvent } from '../../../runtime/log/lastEvent.js';
import { parseCheckpoint } from '../format/checkpoint.js';
import { MalformedEvidenceError, unlessMalformed } from '../format/parsing.js';
import { parseNote } from '../format/signedNote.js';
import { tileFolder } from '../tree/tileFolder.js';
import { type HeadToCheck, headToCheck } from './headsToCheck.js';
import { originOf, type VerifiersOf } from './signedHeads.js';

const HEADS = treeHeadStream('');

/**
 * Last head in a log that has no head of its own, to be named by its first head. Events without a valid head are
 * skipped: verifying the log names them.
 * @throws UnavailableError, the signal's reason
 */
export async function headToContinue(
  events: Pick<EventStore, 'readAll'>,
  signal: AbortSignal,
): Promise<ContinuedHead | undefined> {
  let last: ContinuedHead | undefined;
  for await (const batch of events.readAll(undefined, { types: ['TreeHeadSigned'] }, { signal }))
    for (const { stream, data } of batch.events) last = headOfAnotherLog(stream, data) ?? last;
  signal.throwIfAborted();
  return last;
}

function headOfAnotherLog(stream: string, data: unknown): ContinuedHead | undefined {
  const note = (data as Partial<TreeHeadSigned['data']> | null)?.note ?? '';
  const logId = stream.slice(HEADS.length);
  const head = unlessMalformed(() => parseCheckpoint(parseNote(note).body));
  return head?.origin.endsWith(originOf('', logId)) === true
    ? { log_id: logId, size: head.size, root: head.root.toString('base64'), note }
    : undefined;
}

/** The heads that this log continues: that of the log it was made from, that of the one before, and so on. */
export async function continuedHeads(
  stored: Pick<EventStore, 'logId' | 'read'>,
  verifiersOf: VerifiersOf,
): Promise<readonly HeadToCheck[]> {
  const heads: HeadToCheck[] = [];
  const seen = new Set<string>();
  for (let logId: string | undefined = stored.logId; logId !== undefined && !seen.has(logId);) {
    seen.add(logId);
    const [first]: readonly RecordedEvent[] = await stored
      .read(treeHeadStream(logId), { limit: 1 })
      .catch(noneReadable);
    const named: ContinuedHead | undefined = (first?.data as Partial<TreeHeadSigned['data']> | null | undefined)
      ?.continues;
    if (named !== undefined) heads.push(await headNamed(stored, named, verifiersOf));
    logId = named?.log_id;
  }
  return heads;
}

async function headNamed(
  stored: Pick<EventStore, 'read'>,
  { log_id: logId, size, root, note }: ContinuedHead,
  verifiersOf: VerifiersOf,
): Promise<HeadToCheck> {
  const from = `the last head of log ${logId}, which this one continues`;
  const faulty = (fault: string): HeadToCheck => ({
    origin: '',
    size: Number.isSafeInteger(size) ? size : 0,
    root: Buffer.alloc(0),
    from,
    fault,
  });
  try {
    const head = headToCheck({ from, note }, verifiersOf);
    if (!head.origin.endsWith(originOf('', logId)) || head.size !== size || head.root.toString('base64') !== root)
      return faulty('the first head of the log names another size, root or log than it has');
    const last = await lastEvent(stored, treeHeadStream(logId));
    const lastNote = (last?.data as Partial<TreeHeadSigned['data']> | null | undefined)?.note;
    return lastNote === note ? head : faulty('it is not the last head of that log');
  } catch (error) {
    if (error instanceof MalformedEvidenceError || error instanceof AlteredEventError) return faulty(error.message);
    throw error;
  }
}

/** Treats unreadable heads as absent here: a verification judges the heads in the log one by one, and names them. */
function noneReadable(error: unknown): readonly RecordedEvent[] {
  if (error instanceof AlteredEventError) return [];
  throw error;
}

/**
 * Adds to heads the restore by which this log, or one that it was made from, began without some of their events.
 * @throws UnavailableError
 */
export async function withRestores(
  heads: readonly HeadToCheck[],
  stored: Pick<EventStore, 'logId' | 'read'>,
): Promise<readonly HeadToCheck[]> {
  if (heads.length === 0) return heads;
  const restores = (await stored.read(RESTORED_STREAM).catch(noneReadable)).flatMap((event) => {
    const { from_log_id: from, events } = event.data as LogRestored['data'];
    // A log is never restored from itself: such an event would only explain away that it was cut off.
    return from === stored.logId ? [] : [{ origin: originOf('', from), restored: { events, event } }];
  });
  return heads.map((head) => {
    const made = restores.find(({ origin, restored }) => head.origin.endsWith(origin) && restored.events < head.size);
    return made === undefined ? head : { ...head, restored: made.restored };
  });
}

export interface OtherSignedLog {
  readonly log_id: string;
  readonly events: number;
  /** Folder of the log's last head. */
  readonly folder: string;
}

/**
 * Other logs in SEAL_DIR with a signed head that this log does not continue.
 * @param dir has a folder for each log, named by its id
 * @param continued heads that this log continues
 * @throws the file system's errors
 */
export async function otherSignedLogs(
  dir: string,
  logId: string,
  continued: readonly HeadToCheck[],
  verifiersOf: VerifiersOf,
): Promise<readonly OtherSignedLog[]> {
  const found: OtherSignedLog[] = [];
  for (const name of (await foldersIn(dir)).toSorted()) {
    if (name === logId) continue;
    const folder = join(dir, name);
    const head = await headIn(folder, verifiersOf);
    if (head === undefined || head.verified === false || head.fault !== undefined) continue;
    if (
      continued.some(({ origin, size, root }) => origin === head.origin && size === head.size && root.equals(head.root))
    )
      continue;
    found.push({ log_id: name, events: head.size, folder });
  }
  return found;
}

async function foldersIn(dir: string): Promise<string[]> {
  const entries = await orMissing(readdir(dir, { withFileTypes: true }), []);
  return entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
}

/** The published head in a folder; `undefined` where there is none, or it is unreadable. */
async function headIn(folder: string, verifiersOf: VerifiersOf): Promise<HeadToCheck | undefined> {
  const note = await tileFolder(folder).head();
  if (note === undefined) return undefined;
  return unlessMalformed(() => headToCheck({ from: folder, note }, verifiersOf));
}
