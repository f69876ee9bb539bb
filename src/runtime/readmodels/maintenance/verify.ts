/**
 * Folds the log afresh into a copy and compares it with the served documents by id. Each served document is also
 * compared with the values that lists find it by. Documents that changed during the comparison are compared again.
 * Served data is not touched, and memory use does not grow with the collection.
 */
import { isDeepStrictEqual } from 'node:util';
import { LOW_PRIORITY_SLICE_MS, slices } from '../../../lib/async/slices.js';
import { byBytes } from '../../../lib/byBytes.js';
import { endTimer, every, randomFraction } from '../../../lib/world.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { CollectionSpec, ReadStore, StoredDocument } from '../../../ports/readStore.js';
import { checkpointName, collectionOf, type Projection } from '../projection.js';
import { buildOf, foldOf, otherReleaseText } from '../buildNumbers.js';
import { FEW_DIRTY, runFeed } from '../feed.js';
import { lagBehind } from '../../log/lag.js';
import { type Pace, paced } from '../../coordination/index.js';
import { openBuild } from '../runningBuild.js';
import { type Difference, differenceOf } from './differences.js';
import { foldNow, foldSome } from './foldSome.js';
import { MaintenanceRefusedError, type Verification, type Work } from './orders.js';
import { progressOf } from './progress.js';
import { isOutOfService } from '../quarantine.js';

/** Number of documents in a page; `polite`: while requests are answered. */
const PAGE = { full: 250, polite: 100 };
/** Number of documents that are compared again at once. */
const SUSPECTS = 500;
const CATCH_UP_MS = 5_000;
const REPORT_MS = 200;
/** A sample comes from this many positions in the collection. */
const PLACES = 20;

export interface VerifyOptions extends Work {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly projection: Projection;
  readonly pace: Pace;
  /** How long the projector may take to reach the log's end; default 5 s. */
  readonly catchUpMs?: number;
  readonly onDifference: (difference: Difference) => void | Promise<void>;
}

type Report = Omit<Verification, 'found'>;

/** Share of a verification's time that folding takes. */
const FOLDING = 0.7;

export class VerifyInterruptedError extends Error {
  override readonly name = 'VerifyInterruptedError';
}

async function servedBuild(store: ReadStore, projection: Projection): Promise<Projection> {
  const active = await store.active(projection.name);
  if (active === undefined)
    throw new MaintenanceRefusedError(`${projection.name} has never been built: the projector builds it`);
  const served = foldOf(projection, active);
  if (served === undefined)
    throw new MaintenanceRefusedError(
      otherReleaseText(
        projection.name,
        active,
        projection.version,
        "wait until this one is in use: this program does not know the other, so it can't tell what should be there",
      ),
    );
  return served;
}

/** Compares served documents with the log up to exactly their position. */
function judge({ events, store, onDifference, signal, catchUpMs = CATCH_UP_MS }: VerifyOptions, served: Projection) {
  const collection = collectionOf(served);
  let differences = 0;
  let unsettled = 0;
  let behind = false;

  /** Whether every event of the projection up to `through` is folded and stored, or soon is. */
  async function reaches(through: Position | undefined): Promise<boolean> {
    const name = checkpointName(served);
    if (through === undefined || (await store.reached(name, through, 0))) return true;
    const { events: waiting, whole } = await lagBehind(events, await store.checkpoint(name), served.types, {
      count: 1,
    });
    return (waiting === 0 && whole) || store.reached(name, through, catchUpMs);
  }

  return {
    counts: () => ({ differences, unsettled, behind }),
    /** @param folded the log's documents as of `through`, in the order of `ids` */
    async look(
      ids: readonly string[],
      folded: readonly (StoredDocument | undefined)[],
      through: Position | undefined,
    ): Promise<void> {
      if (!behind) behind = !(await reaches(through));
      const checkpoint = behind ? await store.checkpoint(checkpointName(served)) : through;
      const now = await store.getMany(collection, ids);
      const misindexed = new Set(await store.misindexed(collection, ids));
      for (const [index, id] of ids.entries()) {
        if (signal.aborted) throw new VerifyInterruptedError();
        const document = now[index];
        let expected = folded[index];
        if (document !== undefined && through !== undefined && document.position > through) {
          // The served document is newer: the log's side is folded to the same position.
          const known = expected === undefined ? new Map<string, StoredDocument>() : new Map([[id, expected]]);
          expected = (
            await foldSome({
              events,
              projection: served,
              ids: new Set([id]),
              documents: known,
              after: through,
              through: document.position,
              signal,
            })
          ).get(id);
        } else if (expected !== undefined && (checkpoint === undefined || expected.position > checkpoint)) {
          unsettled += 1;
          continue;
        }
        const difference = differenceOf(served.hidden, id, document, expected, misindexed.has(id));
        if (difference === undefined) continue;
        differences += 1;
        await onDifference(difference);
      }
    },
  };
}

/**
 * @param scratch an empty store for the copy, best on this machine
 * @throws MaintenanceRefusedError, VerifyInterruptedError, UnavailableError
 */
export async function verifyAll(options: VerifyOptions & { readonly scratch: ReadStore }): Promise<Report> {
  const { events, store, projection, pace, signal, scratch, report } = options;
  const served = await servedBuild(store, projection);
  const build = await openBuild(scratch, served);
  const progress = await progressOf({ events, store: scratch }, served.name, build);
  const { events: slowed } = paced({ events: progress.counted, store }, pace);

  async function catchUp(): Promise<void> {
    await runFeed([build], {
      events: slowed,
      store: scratch,
      lease: { held: true },
      signal,
      caughtUp: async () => undefined,
      untilCaughtUp: true,
      endOnAltered: true,
      maxDirty: FEW_DIRTY,
    });
    if (signal.aborted) throw new VerifyInterruptedError();
  }

  const reportFold = (): void => {
    const now = progress.now();
    report((now.share ?? 0) * FOLDING, { step: 'fold', progress: now });
  };
  const reporting = every(REPORT_MS, reportFold);
  try {
    await catchUp();
  } finally {
    endTimer(reporting);
  }
  reportFold();

  const judging = judge(options, served);
  let documents = 0;
  let suspects: string[] = [];
  async function settle(): Promise<void> {
    if (suspects.length === 0) return;
    await catchUp();
    await judging.look(suspects, await scratch.getMany(build.collection, suspects), build.stored);
    suspects = [];
  }
  const pageSize = (): number => (pace.polite ? PAGE.polite : PAGE.full);
  const copy = inOrder(scratch, build.collection, pageSize);
  const collection = collectionOf(served);
  /** Ids of misindexed documents among those that were read and not yet compared. */
  const misindexed = new Set<string>();
  const servedInOrder = inOrder(store, collection, pageSize, async (ids) => {
    for (const id of await store.misindexed(collection, ids)) misindexed.add(id);
  });
  // Pages may come without a turn of the event loop, in which the lease of this work is renewed.
  const time = slices(LOW_PRIORITY_SLICE_MS);
  let [one, other] = await Promise.all([servedInOrder.next(), copy.next()]);
  while (one !== undefined || other !== undefined) {
    if (signal.aborted) throw new VerifyInterruptedError();
    const order = one === undefined ? 1 : other === undefined ? -1 : byBytes(one.id, other.id);
    const isMisindexed = order <= 0 && misindexed.delete(one?.id ?? '');
    const isOut = order === 0 && one !== undefined && isOutOfService(one.body);
    if (isMisindexed || isOut || order !== 0 || !isDeepStrictEqual(one, other))
      suspects.push((order <= 0 ? one : other)?.id ?? '');
    if (order <= 0) one = await servedInOrder.next();
    if (order >= 0) other = await copy.next();
    documents += 1;
    if (time.due()) await time.rest();
    if (suspects.length >= SUSPECTS) await settle();
    if (documents % PAGE.polite === 0) {
      report(null, { step: 'compare', documents });
      await pace.rest(PAGE.polite, signal);
    }
  }
  await settle();
  report(null, { step: 'compare', documents });
  return { ...buildOf(served.version), documents, ...judging.counts(), position: build.stored ?? null };
}

/** Reads a collection in the byte order of ids, one page ahead; `onPage` is called with the ids of each page. */
function inOrder(
  store: ReadStore,
  collection: CollectionSpec,
  pageSize: () => number,
  onPage: (ids: readonly string[]) => Promise<void> = async () => undefined,
): { next(): Promise<StoredDocument | undefined> } {
  interface Page {
    readonly documents: readonly StoredDocument[];
    readonly last: boolean;
  }
  async function ask(after: string | undefined): Promise<Page> {
    const limit = pageSize();
    const documents = await store.find(collection, {
      ...(after === undefined ? {} : { where: { id: { gt: after } } }),
      sort: [['id', 1]],
      limit,
    });
    await onPage(documents.map(({ id }) => id));
    return { documents, last: documents.length < limit };
  }
  let page: readonly StoredDocument[] = [];
  let at = 0;
  let coming: Promise<Page> | undefined = ask(undefined);
  return {
    async next() {
      if (at === page.length) {
        if (coming === undefined) return undefined;
        const { documents, last } = await coming;
        page = documents;
        at = 0;
        coming = last ? undefined : ask(page.at(-1)?.id);
        // The caller that needs the page gets the error.
        coming?.catch(() => undefined);
      }
      return page[at++];
    },
  };
}

/**
 * Verifies `count` documents from all over the collection; missing documents are not found.
 * @throws as `verifyAll`
 */
export async function verifySample(options: VerifyOptions & { readonly count: number }): Promise<Report> {
  const { store, projection, signal, report, count } = options;
  const served = await servedBuild(store, projection);
  const ids = await sampleIds(store, collectionOf(served), count);
  const { documents, through } = await foldNow(options, served, ids, { ...options, part: FOLDING });
  if (signal.aborted) throw new VerifyInterruptedError();
  const judging = judge(options, served);
  for (let from = 0; from < ids.length; from += SUSPECTS) {
    const part = ids.slice(from, from + SUSPECTS);
    await judging.look(
      part,
      part.map((id) => documents.get(id)),
      through,
    );
  }
  report(null, { step: 'compare', documents: ids.length });
  return { ...buildOf(served.version), documents: ids.length, ...judging.counts(), position: through ?? null };
}

async function sampleIds(store: ReadStore, collection: CollectionSpec, count: number): Promise<string[]> {
  const all = await store.count(collection, {});
  const places = all <= count ? 1 : PLACES;
  const each = Math.ceil(count / places);
  const ids = new Set<string>();
  for (let place = 0; place < places && ids.size < count; place++) {
    const part = all / places;
    const skip = Math.floor(place * part + randomFraction() * Math.max(0, part - each));
    for (const { id } of await store.find(collection, {
      sort: [['id', 1]],
      skip,
      limit: Math.min(each, count - ids.size),
    }))
      ids.add(id);
  }
  return [...ids];
}
