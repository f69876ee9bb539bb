import { ticks } from '../../lib/world.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, IndexSpec, Query, ReadStore, StoredDocument } from '../../ports/readStore.js';
import { positionFault, type ReachedLog } from '../../ports/storedPosition.js';
import { OutOfServiceError, UnavailableError } from '../../ports/unavailable.js';
import { sameVersion } from './buildNumbers.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { editionOf } from './edition.js';
import { damagedDocuments, isOutOfService, isUnreadable, listQuarantined } from './quarantine.js';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';

/**
 * Every method throws UnavailableError when the read store can't be reached, and while the stored position of the build in
 * use is one that the log can't have given (docs/design.md#stored-positions).
 */
export interface ReadModel<B extends Body> {
  /**
   * @param since the caller's `Gift-Position`: if the log does not answer, only a model that has reached it answers
   * @throws UnavailableError also for a quarantined document, and for a missing one before any build has caught up
   */
  get(id: string, since?: Position): Promise<B | undefined>;
  /** Documents in the order of `ids`; `since` and errors are as in `get`. */
  getMany(ids: readonly string[], since?: Position): Promise<(B | undefined)[]>;
  /**
   * Leaves out quarantined documents, which do not count for a limit.
   * @throws UnavailableError also before any build has caught up, and while one is in use whose fold had no such index
   */
  find(query: Query): Promise<{ readonly id: string; readonly body: B }[]>;
  /** Ids of the documents that are known to be out of service. */
  outOfService(): Promise<string[]>;
  /**
   * Changes within a second when documents may have changed without an event: another build is in use, or some were
   * repaired or taken out of service. Documents kept in memory are stale then.
   */
  edition(): string;
  /**
   * Waits until every event up to `position` is folded. `patient`: no caller waits for the answer.
   * @returns whether they are folded within `timeoutMs`
   */
  reached(position: Position, timeoutMs: number, patient?: 'patient'): Promise<boolean>;
  /** Position up to which every event is in the documents that later reads see; `undefined`: none is folded yet. */
  folded(): Promise<Position | undefined>;
}

/** How long the build in use counts as known. */
const KNOWN_MS = 1_000;
/** The same limit as `KNOWN_MS`, where a document is to be reported missing. */
const SURE_MS = 100;
/**
 * After this long a read first looks up which build is in use. A build without readers is not kept up to date for ever.
 */
const OLD_MS = 10_000;

/** Whether a build has the indexes of a query: a build of the last release may lack some that this release uses. */
function isIndexed({ indexes }: CollectionSpec, { where = {}, sort = [] }: Query): boolean {
  const fields = [...Object.keys(where), ...sort.map(([field]) => field)];
  return fields.every((field) => field === 'id' || indexes.some((index) => index.fields.includes(field)));
}

const editionText = (version: number, corrections: number): string => `${version}/${corrections}`;

/** A read model as a process knows it. */
interface Known<B extends Body> {
  readonly store: ReadStore;
  readonly projection: ReadProjection<B>;
  readonly damaged: ReturnType<typeof damagedDocuments>;
  /** The build in use, or this code's build before any has caught up. */
  collection: CollectionSpec;
  /** Whether some build has caught up since the store was empty. */
  complete: boolean;
  /** Text of the edition, made once since each of many reads requests it. */
  edition: string;
  /** Time from which the build in use is known, by the monotonic clock. */
  knownAt: number;
  /** The query for the build in use, while it runs. */
  asking: Promise<void> | undefined;
  readonly log: ReachedLog | undefined;
  /** The build whose stored position the log had reached when this process first read it. */
  checked: number | undefined;
}

type ReadProjection<B extends Body> = Pick<Projection<B>, 'name' | 'version' | 'indexes' | 'isFinal' | 'previous'>;

/**
 * Reads the build in use, or this code's build before any has caught up. Needs no close. Without the log stored positions
 * are not checked.
 */
export function openReadModel<B extends Body>(
  store: ReadStore,
  projection: ReadProjection<B>,
  log?: ReachedLog & Pick<EventStore, 'hurry'>,
): ReadModel<B> {
  const collection = collectionOf(projection);
  const model: Known<B> = {
    store,
    projection,
    damaged: damagedDocuments(store.records),
    collection,
    complete: false,
    edition: editionText(collection.version, 0),
    knownAt: Number.NEGATIVE_INFINITY,
    asking: undefined,
    log,
    checked: undefined,
  };
  const finals = projection.isFinal && finalDocuments<B>(projection.isFinal.bind(projection));

  async function get(id: string): Promise<B | undefined> {
    const requested = refreshed(model);
    if (requested !== undefined) await requested;
    const { collection: looked, edition } = model;
    // Documents in memory are used only while the build in use is known, so that repairs and swaps show within a
    // second.
    const isKnown = model.complete && ticks() - model.knownAt < KNOWN_MS;
    const stored = isKnown ? finals?.get(id, edition) : undefined;
    if (stored !== undefined) return stored;
    const document = await store.get<B>(looked, id);
    if (document !== undefined) {
      const body = bodyOf(model, looked, document);
      if (model.complete) finals?.keep(id, body, edition);
      return body;
    }
    return (await shouldLookAgain(model, looked)) ? get(id) : undefined;
  }

  async function getMany(ids: readonly string[]): Promise<(B | undefined)[]> {
    if (ids.length === 0) return [];
    const requested = refreshed(model);
    if (requested !== undefined) await requested;
    const { collection: looked } = model;
    const documents = await store.getMany<B>(looked, ids);
    if (documents.includes(undefined) && (await shouldLookAgain(model, looked))) return getMany(ids);
    return documents.map((document) => (document === undefined ? undefined : bodyOf(model, looked, document)));
  }

  return {
    get,
    getMany,
    find: async (query) => find(model, query),
    async outOfService() {
      const found = await listQuarantined(store.records, await completeCollection(model));
      return found.flatMap(({ documentId }) => documentId ?? []);
    },
    edition: () => model.edition,
    folded: async () => store.checkpoint(checkpointName(await completeCollection(model))),
    async reached(position, timeoutMs, patient) {
      if (timeoutMs > 0 && patient === undefined) log?.hurry?.(position);
      const requested = refreshed(model);
      if (requested !== undefined) await requested;
      const { collection: waited } = model;
      if (await store.reached(checkpointName(waited), position, timeoutMs)) return true;
      // A build that went out of use during the wait does not advance.
      await ask(model);
      return model.collection !== waited && store.reached(checkpointName(model.collection), position, 0);
    },
  };
}

/**
 * Updates the build in use about once a second. Only the first read, and the first after a long pause, wait for it.
 */
function refreshed<B extends Body>(model: Known<B>): Promise<void> | undefined {
  const age = ticks() - model.knownAt;
  if (age < KNOWN_MS) return undefined;
  if (age > OLD_MS) return ask(model);
  // A failure is ignored here, since a later read tries again.
  ask(model).catch(() => undefined);
  return undefined;
}

/** Looks the build in use up; concurrent calls share one query. */
function ask<B extends Body>(model: Known<B>): Promise<void> {
  model.asking ??= lookUp(model).finally(() => {
    model.asking = undefined;
  });
  return model.asking;
}

async function lookUp<B extends Body>(model: Known<B>): Promise<void> {
  const { store, projection, collection } = model;
  const requested = ticks();
  const [active, corrected] = await Promise.all([store.active(projection.name), editionOf(store, projection.name)]);
  await refuseUnlessOnLog(model, active ?? collection.version);
  model.complete = active !== undefined;
  if (active !== undefined && active !== collection.version)
    model.collection = { ...collection, version: active, indexes: indexesOf(projection, active) };
  model.edition = editionText(model.collection.version, corrected);
  model.knownAt = requested;
}

/**
 * Checks the stored position of a build that this process has not read before. Its documents may lack events, or know of
 * some that the log has lost, until the projector has seen it and builds the read model again.
 */
async function refuseUnlessOnLog<B extends Body>(model: Known<B>, version: number): Promise<void> {
  const { store, projection, collection, log } = model;
  if (log === undefined || model.checked === version) return;
  const position = await store.checkpoint(checkpointName({ ...collection, version }));
  const fault = position === undefined ? undefined : await positionFault(log, position);
  if (fault !== undefined) throw new UnavailableError(`${projection.name}: the stored position ${fault}`);
  model.checked = version;
}

/** Indexes of a build; a build of a later release counts as having those of this release. */
function indexesOf<B extends Body>(projection: ReadProjection<B>, number: number): readonly IndexSpec[] {
  const folds: readonly Pick<Projection, 'version' | 'indexes'>[] = [projection, ...(projection.previous ?? [])];
  return (folds.find(({ version }) => sameVersion(version, number)) ?? projection).indexes;
}

/** Whether another build is in use by now. @throws UnavailableError before any has caught up */
async function shouldLookAgain<B extends Body>(model: Known<B>, looked: CollectionSpec): Promise<boolean> {
  const wasComplete = model.complete;
  if (!wasComplete || ticks() - model.knownAt > SURE_MS) await ask(model);
  requireComplete(model);
  return !wasComplete || model.collection !== looked;
}

function requireComplete<B extends Body>({ complete, projection }: Known<B>): void {
  if (!complete) throw new UnavailableError(`${projection.name} is still being built`);
}

/** The build in use. @throws UnavailableError before any has caught up */
async function completeCollection<B extends Body>(model: Known<B>): Promise<CollectionSpec> {
  const requested = refreshed(model);
  if (requested !== undefined) await requested;
  if (!model.complete) await ask(model);
  requireComplete(model);
  return model.collection;
}

async function find<B extends Body>(
  model: Known<B>,
  query: Query,
): Promise<{ readonly id: string; readonly body: B }[]> {
  const { store, projection } = model;
  const looked = await completeCollection(model);
  if (looked.indexes !== projection.indexes && !isIndexed(looked, query))
    throw new UnavailableError(`${projection.name}: the build in use lacks an index`);
  // A short page means the end to the caller, so quarantined documents are replaced by later ones.
  for (let { limit } = query; ; limit *= 2) {
    const found = await store.find<B>(looked, limit === undefined ? query : { ...query, limit });
    const shown = found.filter((document) => isShown(model, looked, document));
    if (limit === undefined || found.length < limit || shown.length >= (query.limit ?? 0))
      return shown.slice(0, query.limit).map(({ id, body }) => ({ id, body }));
  }
}

/** Whether readers see the document. A damaged one is recorded, which raises an alert. */
function isShown<B extends Body>({ damaged }: Known<B>, looked: CollectionSpec, document: StoredDocument<B>): boolean {
  const { id, position, body } = document;
  if (isUnreadable(body)) damaged.note(looked, { id, position, body });
  return !isOutOfService(body);
}

function bodyOf<B extends Body>(model: Known<B>, looked: CollectionSpec, document: StoredDocument<B>): B {
  const { id, body } = document;
  if (!isShown(model, looked, document))
    throw new OutOfServiceError(
      `${model.projection.name}: document ${id} is out of service: ${isUnreadable(body) ? body.$unreadable : 'it is quarantined'}`,
    );
  return body;
}

/** Most documents in memory; they take some MB. */
const KEPT = 5_000;

interface FinalDocuments<B extends Body> {
  /** `undefined`: the document is not in memory, or is of another edition. */
  get(id: string, edition: string): B | undefined;
  /** Retains a final document, and ignores others. `edition`: the read model's edition before the read. */
  keep(id: string, document: B, edition: string): void;
}

/** Documents that no event changes any more, held in the reader's memory. */
function finalDocuments<B extends Body>(isFinal: (document: B) => boolean): FinalDocuments<B> {
  const kept = new LRUCache<string, B>(atMost(KEPT));
  let of = '';
  return {
    get: (id, edition) => (edition === of ? kept.get(id) : undefined),
    keep(id, document, edition) {
      if (!isFinal(document)) return;
      if (edition !== of) kept.clear();
      of = edition;
      kept.set(id, document);
    },
  };
}
