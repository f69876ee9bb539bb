/**
 * Keeps the tree over the log in its folder, and signs heads of it. One process does, by a lease; no command waits for
 * it. Another process goes on from its own folder, or makes it anew from the log.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { TreeEvent } from '../../domain/treeHeads.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { acquireLease, type Lease } from '../../runtime/coordination/lease.js';
import { parseCheckpoint } from '../../runtime/evidence/checkpoint.js';
import type { TreeHead } from '../../runtime/evidence/merkleTree.js';
import { parseNote } from '../../runtime/evidence/signedNote.js';
import type { WitnessClient } from '../../runtime/evidence/witnessClient.js';
import type { FollowerRun, Followers } from '../../runtime/supervision/followers.js';
import { LogAlteredError } from '../../runtime/tree/logAltered.js';
import { type LogTree, openLogTree } from '../../runtime/tree/logTree.js';
import { OtherTileError, type TileFolder } from '../../runtime/tree/tileFolder.js';
import { askWitnesses, type WitnessDisagreesError } from './askWitnesses.js';
import { verifiersOf } from './headKeys.js';
import { headToCheck } from './headsToCheck.js';
import { leavesOf } from './leaves.js';
import { findLeafRules, leafRulesOf } from './leafRules.js';
import { type HeadSigning, lastTrustedHead, type SignedHead, signHead } from './signedHeads.js';

export const TREE_LEASE = 'tree';
/** Of followers. */
export const TREE_PART = 'tree';
/** A tree that grew by these alone needs no other head: an idle log would grow for ever. */
const OWN_TYPES: ReadonlySet<string> = new Set<TreeEvent['type']>(['TreeHeadSigned', 'TreeStarted']);
/** A log that was altered stays so: it is read again from its start. */
const RESTART_MS = [500, 60_000] as const;

export interface TreeKeeperDeps extends HeadSigning {
  /** For the signed heads. */
  readonly events: EventStore;
  /** The same log as stored: neither decrypted nor upcast. */
  readonly stored: EventStore;
  readonly folder: TileFolder;
  /** The least time between two heads. */
  readonly everyMs: number;
  readonly witnesses: readonly WitnessClient[];
}

export interface TreeKeeperOptions extends TreeKeeperDeps {
  readonly records: Records;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
}

export function startTreeKeeper({ records, holder, logger, followers, ...deps }: TreeKeeperOptions): {
  close(): Promise<void>;
} {
  return followers.start(
    TREE_PART,
    async (health) => {
      while (!health.signal.aborted) {
        const lease = await acquireLease(records, TREE_LEASE, {
          holder,
          signal: health.signal,
          logger,
          onHeld: () => health.well(),
          onTrouble: (error) => error !== undefined && health.onTrouble(error),
        });
        if (lease === undefined) return;
        const signal = AbortSignal.any([health.signal, lease.lost]);
        try {
          await keepTree(deps, lease, { ...health, signal });
        } catch (error) {
          if (!signal.aborted) throw error;
        } finally {
          await lease.release();
        }
      }
    },
    { restartMs: RESTART_MS, aside: true },
  );
}

/**
 * Runs until `signal` is aborted.
 * @throws LogAlteredError where the log, or the folder, is not what was signed; UnavailableError, ConflictError, the file
 * system's errors
 */
export async function keepTree(
  deps: TreeKeeperDeps,
  lease: Pick<Lease, 'held'>,
  { signal, well, onTrouble }: FollowerRun,
): Promise<void> {
  const { events, stored, folder, everyMs, now, witnesses } = deps;
  const mayWrite = (): void => {
    if (!lease.held) throw new Error('another process may keep the tree now');
  };
  let last = await lastTrustedHead(events, deps.keys);
  const published = await folder.head();
  refuseOlderLog(published, last);
  const isNew = (await findLeafRules(events)) === undefined;
  if (isNew && last !== undefined) throw new LogAlteredError(last);
  if (isNew && !(await isToStart(events, everyMs, { signal, well }))) return;
  const leaves = leavesOf(await leafRulesOf(events, now));
  // One that is published is never overwritten by another root of its size, though the log's own head is gone.
  const heads: TreeHead[] = last === undefined ? [] : [last];
  if (published !== undefined && !isPublished(published, last)) {
    const shown = headToCheck({ from: 'the published head', note: published }, verifiersOf(deps.keys));
    if (shown.verified === true) heads.push(shown);
  }
  const tree = await openLogTree({ stored, folder, leafHash: leaves.hash }, heads, signal);
  // Events that the tree's tiles hold already are news where no head covers them.
  let news = tree.size > (last?.size ?? 0);
  let due = performance.now() + (isNew ? 0 : dueIn(last, everyMs));
  let disagreement: WitnessDisagreesError | undefined;
  const publish = async (head: SignedHead): Promise<void> => {
    mayWrite();
    await folder.publish(head.note, tree.partialTiles());
    disagreement = await askWitnesses(witnesses, folder, head, mayWrite, signal);
  };
  let unpublished = isPublished(await folder.head(), last) ? undefined : last;
  while (!signal.aborted) {
    await readOn(tree, folder, last, signal, mayWrite, (isNews) => (news ||= isNews && tree.size > (last?.size ?? 0)));
    if (signal.aborted) return;
    if (unpublished !== undefined) await publish(unpublished);
    unpublished = undefined;
    mayWrite();
    if (news && performance.now() >= due && !(await events.sealed())) {
      last = await signHead(events, deps, { size: tree.size, root: tree.root(), position: tree.position ?? '' }, last);
      [news, due] = [false, performance.now() + everyMs];
      await publish(last);
    }
    if (disagreement === undefined) well();
    else onTrouble(disagreement);
    await pause(Math.min(everyMs, Math.max(0, due - performance.now()) || everyMs), signal);
  }
}

/** Waits for the first event. A tree is no reason to append to a log that nothing is appended to. */
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
  last: SignedHead | undefined,
  signal: AbortSignal,
  mayWrite: () => void,
  onEvent: (isNews: boolean) => void,
): Promise<void> {
  try {
    await tree.readOn(signal, mayWrite, ({ type }) => onEvent(!OWN_TYPES.has(type)));
  } catch (error) {
    if (!(error instanceof OtherTileError)) throw error;
    if (error.size > (last?.size ?? 0)) throw new LogAlteredError(error, { cause: error });
    // The log agrees with a signed head that covers the tile: the tile is spoilt, and so may others be.
    await folder.clear();
    throw error;
  }
}

/** @throws LogAlteredError where the folder has a head that the log has lost: the log was put back to before it */
function refuseOlderLog(kept: string | undefined, last: SignedHead | undefined): void {
  if (kept === undefined) return;
  const { size } = parseCheckpoint(parseNote(kept).body);
  if (size > (last?.size ?? 0)) throw new LogAlteredError({ size });
}

/** Whether the published head is this one, also with cosignatures. */
function isPublished(published: string | undefined, head: SignedHead | undefined): boolean {
  return published !== undefined && head !== undefined && parseNote(published).body === parseNote(head.note).body;
}

/** ms until the next head may be signed. */
function dueIn(last: SignedHead | undefined, everyMs: number): number {
  if (last === undefined) return everyMs;
  return Math.min(everyMs, Math.max(0, last.at + everyMs - Date.now()));
}
