/** Keeps the tree over the log in its folder, and signs heads of it. */
import { pause } from '../../../lib/async/pause.js';
import { TREE_TYPES } from '../../../domain/treeHeads.js';
import { clockMs } from '../../../lib/clock.js';
import { ticks } from '../../../lib/world.js';
import type { EventStore } from '../../../ports/eventStore.js';
import type { Lease } from '../../../runtime/coordination/index.js';
import { MalformedEvidenceError } from '../format/parsing.js';
import type { TreeHead } from '../format/merkleTree.js';
import { rootOfTiles } from '../format/tiles.js';
import type { WitnessClient } from '../witness/witnessClient.js';
import type { FollowerRun, PublicReasonError } from '../../../runtime/supervision/followers.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { LogAlteredError, type LogTree, openLogTree } from '../tree/logTree.js';
import { OtherTileError, type TileFolder } from '../tree/tileFolder.js';
import { type Requested, askWitnesses, holdAgainst, witnessedHeads } from '../heads/witnessedHeads.js';
import { headToContinue } from '../heads/otherLogs.js';
import {
  type HeadSigning,
  lastTrustedHead,
  originOf,
  type SignedHead,
  signHead,
  type VerifiersOf,
  verifiersOf,
} from '../heads/signedHeads.js';
import { findLeafRules, leafRulesOf, leavesOf } from '../tree/leaves.js';
import {
  type HeadToCheck,
  isPublished,
  isPublishedWhole,
  publishedHead,
  type StoredHead,
} from '../heads/headsToCheck.js';

/**
 * Number of `everyMs` periods after which a witness that refused a head is contacted again, even if nothing is
 * appended.
 */
const ASK_AGAIN = 10;
/** Tree of a log that has none yet. */
const NO_TREE: Pick<LogTree, 'size' | 'continues'> = { size: 0, continues: async ({ size }) => size === 0 };
export interface TreeKeeperDeps extends HeadSigning {
  /** The log whose tree it is. */
  readonly events: EventStore;
  /** The same log as stored: neither decrypted nor upcast. */
  readonly stored: EventStore;
  readonly folder: TileFolder;
  /** Least time between two signed heads, in milliseconds. */
  readonly everyMs: number;
  readonly witnesses: readonly WitnessClient[];
}

/**
 * Keeps the tree, and signs heads of it, until the signal of `health` is aborted.
 * @throws LogAlteredError where the log, or the folder, is not what was signed; UnavailableError, ConflictError, the
 * file system's errors
 */
export async function keepTree(deps: TreeKeeperDeps, lease: Pick<Lease, 'held'>, health: FollowerRun): Promise<void> {
  try {
    await signOn(deps, lease, health);
  } catch (error) {
    // An unreadable event can't be the event that was signed.
    if (error instanceof AlteredEventError) throw new LogAlteredError(error.message, { cause: error });
    throw error;
  }
}

async function signOn(
  deps: TreeKeeperDeps,
  lease: Pick<Lease, 'held'>,
  { signal, well, onTrouble }: FollowerRun,
): Promise<void> {
  const { events, stored, folder, everyMs, append, witnesses } = deps;
  const mayWrite = (): void => {
    if (!lease.held) throw new Error('another process may keep the tree now');
  };
  const known = verifiersOf(deps.keys);
  let last = await lastTrustedHead(events, deps.keys);
  const published = await publishedHead(folder, known);
  // The events below that head may all be there: what the log has lost is the head's own event, and all behind it.
  if (published !== undefined && published.size > (last?.size ?? 0))
    throw new LogAlteredError(
      `the head of ${published.size} events was published, and the log has none of that size any more: it was cut off, or put back to an earlier time`,
    );
  // Witnesses are queried before the log is read, so that the log as read holds every event they had cosigned.
  const origin = last?.origin ?? originOf(deps.host, events.logId);
  let against = await witnessedHeads(witnesses, folder, origin, known, signal);
  const isNew = (await findLeafRules(events)) === undefined;
  if (isNew) await holdAgainst(against, NO_TREE, folder, mayWrite, signal);
  if (isNew && last !== undefined) throw new LogAlteredError(last);
  if (isNew && !(await isToStart(events, everyMs, { signal, well }))) return;
  const leaves = leavesOf(await leafRulesOf(events, append));
  // The tree must continue the published head too: another root of its size never overwrites it, even if the log has
  // lost it.
  const heads: TreeHead[] = last === undefined ? [] : [last];
  if (published?.verified === true && !isPublished(published, last)) heads.push(published);
  const tree = await openLogTree({ stored, folder, leaves }, heads, signal);
  // Events that the tree's tiles hold already need a new head where no head covers them.
  let news = tree.size > (last?.size ?? 0);
  let due = ticks() + (isNew ? 0 : dueIn(last, everyMs));
  let trouble: PublicReasonError | undefined;
  let unpublished = isPublished(published, last) ? undefined : last;
  // A log that rests gets no further head: proofs rest on the tiles of this one.
  let unchecked = published;
  const readAndJudge = async (): Promise<void> => {
    await readOn(tree, folder, signal, mayWrite, (isNews) => (news ||= isNews && tree.size > (last?.size ?? 0)));
    if (!signal.aborted) await holdAgainst(against, tree, folder, mayWrite, signal);
    against = [];
  };
  let askAt = Number.POSITIVE_INFINITY;
  const publish = async (head: SignedHead): Promise<void> => {
    const requested = await cosignatures(tree, head, deps, known, signal);
    ({ against, trouble } = requested);
    askAt = trouble === undefined ? Number.POSITIVE_INFINITY : ticks() + ASK_AGAIN * everyMs;
    if (against.length > 0) await readAndJudge();
    if (signal.aborted || (await isPublishedWhole(folder, requested.note))) return;
    mayWrite();
    await folder.publish(requested.note, tree.partialTiles());
  };
  while (!signal.aborted) {
    await readAndJudge();
    if (signal.aborted) return;
    if (ticks() >= askAt) unpublished ??= last;
    if (unpublished !== undefined) await publish(unpublished);
    else if (unchecked !== undefined) await restorePartialTiles(tree, unchecked, folder, mayWrite);
    [unpublished, unchecked] = [undefined, undefined];
    if (signal.aborted) return;
    mayWrite();
    if (news && ticks() >= due && !(await events.sealed())) {
      const head = { size: tree.size, root: tree.root(), position: tree.position ?? '' };
      const continues = last === undefined ? await headToContinue(events, signal) : undefined;
      mayWrite();
      last = await signHead(events, deps, head, last, continues);
      [news, due] = [false, ticks() + everyMs];
      await publish(last);
    }
    if (trouble === undefined) well();
    else onTrouble(trouble);
    await pause(Math.min(everyMs, Math.max(0, due - ticks()) || everyMs), signal);
  }
}

/** Stores partial tiles of the published head again, where they are missing or are not those of the tree. */
async function restorePartialTiles(
  tree: LogTree,
  { note, size, root }: HeadToCheck & StoredHead,
  folder: TileFolder,
  mayWrite: () => void,
): Promise<void> {
  if ((await rootOfTiles(folder.read, size))?.equals(root) === true) return;
  mayWrite();
  await folder.publish(note, tree.partialTiles());
}

async function cosignatures(
  tree: LogTree,
  head: SignedHead,
  { witnesses }: Pick<TreeKeeperDeps, 'witnesses'>,
  verifiersOf: VerifiersOf,
  signal: AbortSignal,
): Promise<Requested> {
  try {
    return await askWitnesses(witnesses, head, tree.hashes(head.size), verifiersOf, signal);
  } catch (error) {
    if (!(error instanceof MalformedEvidenceError)) throw error;
    return tree.blameTiles(head, signal);
  }
}

/**
 * Waits until the log has an event and is not sealed: the tree must not be the first to append to a log.
 * @returns false where the signal was aborted
 */
async function isToStart(
  events: Pick<EventStore, 'end' | 'sealed'>,
  everyMs: number,
  { signal, well }: Pick<FollowerRun, 'signal' | 'well'>,
): Promise<boolean> {
  do {
    well();
    await pause(everyMs, signal);
    if (signal.aborted) return false;
  } while ((await events.end()) === undefined || (await events.sealed()));
  return true;
}

async function readOn(
  tree: LogTree,
  folder: TileFolder,
  signal: AbortSignal,
  mayWrite: () => void,
  onEvent: (isNews: boolean) => void,
): Promise<void> {
  try {
    await tree.readOn(signal, mayWrite, ({ type }) => onEvent(!TREE_TYPES.has(type)));
  } catch (error) {
    if (!(error instanceof OtherTileError)) throw error;
    // The log agrees with all signed heads. So the tile is corrupted, as by a power cut before it was on disk, and others
    // may be too.
    await folder.clear();
    throw error;
  }
}

/** ms until the next head may be signed. */
function dueIn(last: SignedHead | undefined, everyMs: number): number {
  if (last === undefined) return everyMs;
  return Math.min(everyMs, Math.max(0, last.at + everyMs - clockMs()));
}
