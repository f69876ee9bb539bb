/**
 * Checks every event of a log against every head that was signed over it, and against its stored tiles. It
 * reads the log once, in constant memory, and changes nothing.
 */
import { shownStream } from '../../../domain/streamName.js';
import { TREE_STREAM } from '../../../domain/treeHeads.js';
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import { MASK } from '../../../lib/mask.js';
import { ticks } from '../../../lib/world.js';
import type { EventStore } from '../../../ports/eventStore.js';
import { MalformedEvidenceError } from '../format/parsing.js';
import { TreeBuilder, rootOfTiles } from '../format/tiles.js';
import type { TileFolder } from '../tree/tileFolder.js';
import { HeadChecks } from './headChecks.js';
import type { VerifiersOf } from '../heads/signedHeads.js';
import { withRestores } from '../heads/otherLogs.js';
import { headsInLog, type HeadToCheck, headToCheck, type Restore, type StoredHead } from '../heads/headsToCheck.js';
import { storedLeaves, TileComparison, type Differing } from './tileComparison.js';
import { leafBatches, type LeafThread, NO_LEAF } from '../tree/leafBatches.js';
import type { Leaves } from '../tree/leaves.js';
import { StreamRevisions } from './streamRevisions.js';
import { UpperTiles } from './upperTiles.js';
import { edgeOf, type KeptProgress, progressOf, type VerifyProgress, whyUnusable } from './verifyProgress.js';
import {
  type EventLocation,
  type Findings,
  FindingsList,
  type Gap,
  NAMED,
  type PlacedEvent,
  locationOf,
  type Unsequenced,
  type Verification,
  type FirstDifference,
} from './verification.js';

const BATCH = 1_000;
const SAVE_MS = 10_000;
const NO_RULES = { hash: () => NO_LEAF, hashTexts: () => NO_LEAF };

export interface VerifyDeps {
  /** The log as stored: neither decrypted nor upcast. */
  readonly stored: Pick<EventStore, 'engine' | 'logId' | 'read' | 'readAll' | 'readTexts' | 'unsequenced'>;
  /** Leaves of the log; `undefined` where the log does not hold their rules, or the rules were altered. */
  readonly leaves: Pick<Leaves, 'hash' | 'hashTexts'> | undefined;
  /** Thread that hashes a part of the leaves. */
  readonly thread?: LeafThread | undefined;
  readonly folder: Pick<TileFolder, 'head' | 'lastPositions' | 'read' | 'witnessed'>;
  readonly verifiersOf: VerifiersOf;
  /** Heads that were retained elsewhere. */
  readonly kept: readonly StoredHead[];
  /** Heads that witnesses have cosigned last. */
  readonly witnessed?: readonly HeadToCheck[];
}

interface VerifyOptions {
  readonly signal?: AbortSignal | undefined;
  readonly onProgress?: ((events: number) => void) | undefined;
  /** Stored progress of an interrupted verification. Absent: the whole log is read, and no progress is stored. */
  readonly progress?: KeptProgress | undefined;
}

/**
 * Verifies a log, to which the service may continue to append.
 * @throws MalformedEvidenceError for a retained head that is malformed; UnavailableError, the file system's errors, the
 * signal's reason
 */
export async function verifyEvents(
  deps: VerifyDeps,
  { signal, onProgress, progress }: VerifyOptions = {},
): Promise<Verification> {
  const { stored, leaves, thread, folder, verifiersOf } = deps;
  const outside = await withRestores(await headsOutside(deps), stored);
  const unsequenced = await unsequencedIn(stored);
  const start = leaves === undefined ? undefined : await continuable(progress, stored, outside);
  const heads = new HeadChecks((after) => headsInLog(stored, verifiersOf, after), outside, stored.logId, start?.heads);
  const size = Math.max(0, ...outside.map((head) => head.size));
  const comparison = new TileComparison(storedLeaves(folder, size));
  const upper = new UpperTiles(folder);
  const gaps = new FindingsList<Gap>();
  const revisions = new StreamRevisions(stored);
  const tree = new TreeBuilder(
    (tile, hashes) => upper.takeTile(tile, hashes),
    start === undefined ? undefined : edgeOf(start),
  );
  let last: PlacedEvent | null = start?.last ?? null;
  let treeStart: EventLocation | undefined;

  const look = (event: PlacedEvent, leaf: Buffer): void | Promise<void> => {
    const before = last;
    last = event;
    tree.append(leaf);
    upper.takePosition(tree.size, event.position);
    revisions.look(event, tree.size);
    if (event.stream === TREE_STREAM && event.revision === 0) treeStart = locationOf(event, tree.size);
    if (stored.engine === 'embedded' && Number(event.position) !== Number(before?.position ?? 0) + 1)
      gaps.add({ after: before?.position ?? null, event: locationOf(event, tree.size) });
    return leaves === undefined ? undefined : comparison.compare(leaf, tree.size, event, before);
  };
  const end = (): EventLocation | null => (last === null ? null : locationOf(last, tree.size));

  const save = async (): Promise<void> => {
    if (progress === undefined) return;
    await upper.settle();
    const soFar = leaves === undefined ? undefined : heads.soFar();
    const isClean = gaps.found === 0 && revisions.gaps.found === 0 && !comparison.differs && !upper.differs;
    if (soFar !== undefined && last !== null && isClean) progress.save(progressOf(tree, last, soFar));
  };

  // A service that verifies its own log must answer requests concurrently.
  const time = slices(LOW_PRIORITY_SLICE_MS);
  let saved = ticks();
  try {
    await heads.check(tree);
    for await (const batch of leafBatches({ stored, leaves: leaves ?? NO_RULES, thread }, start?.last.position, {
      batchSize: BATCH,
      signal,
    })) {
      for (const [index, event] of batch.events.entries()) {
        const looking = look(event, batch.hash(index));
        if (looking !== undefined) await looking;
        if (tree.size >= heads.nextSize) await heads.check(tree);
        if (time.due()) await time.rest();
      }
      await revisions.settle();
      if (leaves !== undefined && upper.due) await upper.settle();
      onProgress?.(tree.size);
      if (ticks() - saved < SAVE_MS) continue;
      await save();
      saved = ticks();
    }
    if (signal?.aborted === true) await save();
    signal?.throwIfAborted();
    await heads.finish(tree, end()?.position);
  } finally {
    await heads.close();
  }

  const differing = leaves === undefined ? undefined : await comparison.finish(end());
  const spoilt =
    (differing !== undefined && !(await tilesAreRight(folder, differing, heads))) ||
    (leaves !== undefined &&
      heads.firstWrong === undefined &&
      (await upper.areSpoilt(heads.agreed, publishedOf(outside))));
  const difference =
    leaves === undefined
      ? withoutStart(heads, end(), treeStart)
      : firstDifference(spoilt ? undefined : differing, heads, end());
  const findings = [heads.wrong, gaps, revisions.gaps, unsequenced];
  return {
    agrees: difference === null && findings.every(({ found }) => found === 0) && !spoilt,
    events: tree.size,
    continued_from: start?.size ?? 0,
    position: end()?.position ?? null,
    root: tree.root().toString('base64'),
    heads: heads.heads,
    verified_heads: heads.verified,
    unverified_heads: heads.unverified,
    agreed_size: heads.agreed,
    difference,
    wrong_heads: heads.wrong.findings(),
    gaps: gaps.findings(),
    stream_gaps: revisions.gaps.findings(),
    unsequenced,
    spoilt_tiles: spoilt,
  };
}

/**
 * Inserted events outside the engine's positions. They are read also where an earlier call has read the log's
 * beginning, since they precede it.
 */
async function unsequencedIn(stored: Pick<EventStore, 'unsequenced'>): Promise<Findings<Unsequenced>> {
  const { found, first } = (await stored.unsequenced?.(NAMED)) ?? { found: 0, first: [] };
  return { found, first: first.map((event) => ({ event: { ...event, stream: shownStream(event.stream, MASK) } })) };
}

async function continuable(
  progress: KeptProgress | undefined,
  stored: Pick<EventStore, 'read'>,
  outside: readonly HeadToCheck[],
): Promise<VerifyProgress | undefined> {
  if (progress?.kept === undefined) return undefined;
  const why = await whyUnusable(progress.kept, stored, outside);
  if (why === undefined) return progress.kept;
  progress.unusable(why);
  return undefined;
}

const PUBLISHED = 'the head that was published last';
const publishedOf = (outside: readonly HeadToCheck[]): HeadToCheck | undefined =>
  outside.find(({ from }) => from === PUBLISHED);

async function headsOutside({ folder, kept, witnessed = [], verifiersOf }: VerifyDeps): Promise<HeadToCheck[]> {
  const [published, shown] = await Promise.all([folder.head(), folder.witnessed()]);
  const all = [
    ...kept,
    ...(published === undefined ? [] : [{ from: PUBLISHED, note: published }]),
    ...(shown === undefined ? [] : [{ from: 'the head that a witness has shown, and SEAL_DIR keeps', note: shown }]),
  ];
  return [...all.map((head) => outsideHead(head, verifiersOf)), ...witnessed];
}

function outsideHead(head: StoredHead, verifiersOf: VerifiersOf): HeadToCheck {
  try {
    return headToCheck(head, verifiersOf);
  } catch (error) {
    throw error instanceof MalformedEvidenceError
      ? new MalformedEvidenceError(`${head.from} is not a signed head (${error.message})`)
      : error;
  }
}

/**
 * Whether tiles that differ from the log are what was signed. They count as such also where no head covers the
 * difference.
 */
async function tilesAreRight(
  folder: Pick<TileFolder, 'read'>,
  { number }: Differing,
  heads: HeadChecks,
): Promise<boolean> {
  const { firstWrong: wrong, agreed } = heads;
  // A log that was signed twice has heads of other events: these tiles are evidence, too.
  if (wrong !== undefined && wrong.size >= number)
    return (await rootOfTiles(folder.read, wrong.size))?.equals(wrong.root) === true;
  return number > agreed;
}

/**
 * Difference of a log whose start of the tree is missing or unreadable. A log without heads has no such start to have
 * lost.
 * @param start the event that started the tree, where it exists: it is unreadable
 */
function withoutStart(
  { heads, largest }: HeadChecks,
  last: EventLocation | null,
  start: EventLocation | undefined,
): FirstDifference | null {
  const events = last?.number ?? 0;
  if (start !== undefined) {
    const { number } = start;
    return { change: 'altered', count: 1, number, event: start, before: null, signed: number <= largest };
  }
  if (heads === 0) return null;
  if (largest > events) return cutOff(largest, last);
  return { change: 'start missing', count: 1, number: 0, event: null, before: null, signed: true };
}

function firstDifference(
  differing: Differing | undefined,
  heads: HeadChecks,
  last: EventLocation | null,
): FirstDifference | null {
  const { firstWrong: wrong, agreed, largest } = heads;
  const events = last?.number ?? 0;
  if (differing !== undefined && (wrong === undefined || differing.number <= wrong.size)) {
    const { change, count } = differing;
    const missing = change === 'cut off' ? Math.max(count, largest - events) : count;
    return { ...differing, count: missing, signed: differing.number <= largest };
  }
  if (wrong === undefined) return null;
  if (wrong.restored !== undefined) return restoredWithout(wrong.size, wrong.restored);
  if (wrong.size > events) return cutOff(largest, last);
  // A log that has lost a head may have been written and signed anew, so its own heads say nothing of that one's events.
  const same = wrong.position === undefined ? 0 : agreed;
  return { change: 'unknown', count: wrong.size - same, number: same + 1, event: null, before: null, signed: true };
}

function restoredWithout(size: number, { events, event }: Restore): FirstDifference {
  const number = events + 1;
  return {
    change: 'cut off',
    count: size - events,
    number,
    event: locationOf(event, number),
    before: null,
    signed: true,
  };
}

/** @param largest the size of the largest head @param last the last event that is left */
function cutOff(largest: number, last: EventLocation | null): FirstDifference {
  const events = last?.number ?? 0;
  return { change: 'cut off', count: largest - events, number: events + 1, event: null, before: last, signed: true };
}
