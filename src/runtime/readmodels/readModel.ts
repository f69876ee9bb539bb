import type { EventStore, Position } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, IndexSpec, Query, ReadStore, StoredDocument } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { sameVersion } from './buildNumbers.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { editionOf } from './maintenance/repairOrders.js';
import { finalDocuments } from './finalDocuments.js';
import { damagedDocuments, isOutOfService, isUnreadable } from './quarantine.js';

/** Every method throws UnavailableError when the read store can't be reached. */
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
  /**
   * Changes within a second when documents may have changed without an event: another build is in use, or some were
   * repaired. Documents kept in memory are stale then.
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

/**
 * Reads the build in use, or this code's build before any has caught up. Needs no close. `hurry`: the log's `hurry`.
 */
export function openReadModel<B extends Body>(
  store: ReadStore,
  projection: Pick<Projection<B>, 'name' | 'version' | 'indexes' | 'isFinal' | 'previous'>,
  hurry?: EventStore['hurry'],
): ReadModel<B> {
  const { name } = projection;
  let collection: CollectionSpec = collectionOf(projection);
  /** Whether some build has caught up since the store was empty. */
  let complete = false;
  /** Text of the edition, made once since each of many reads requests it. */
  let edition = editionText(collection.version, 0);
  let knownAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  /** Indexes of a build; a build of a later release counts as having those of this release. */
  function indexesOf(number: number): readonly IndexSpec[] {
    const folds: readonly Pick<Projection, 'version' | 'indexes'>[] = [projection, ...(projection.previous ?? [])];
    return (folds.find(({ version }) => sameVersion(version, number)) ?? projection).indexes;
  }

  function ask(): Promise<void> {
    asking ??= (async () => {
      try {
        const asked = performance.now();
        const [active, corrected] = await Promise.all([store.active(name), editionOf(store, name)]);
        complete = active !== undefined;
        if (active !== undefined && active !== collection.version)
          collection = { ...collection, version: active, indexes: indexesOf(active) };
        edition = editionText(collection.version, corrected);
        knownAt = asked;
      } finally {
        asking = undefined;
      }
    })();
    return asking;
  }

  /**
   * Updates the build in use about once a second. Only the first read, and the first after a long pause, wait for it.
   */
  function refreshed(): Promise<void> | undefined {
    const age = performance.now() - knownAt;
    if (age < KNOWN_MS) return undefined;
    if (age > OLD_MS) return ask();
    // A failure is ignored here, since a later read tries again.
    ask().catch(() => undefined);
    return undefined;
  }

  const damaged = damagedDocuments(store.records);

  /** Whether readers see the document. A damaged one is recorded, which raises an alert. */
  function isShown(looked: CollectionSpec, document: StoredDocument<B>): boolean {
    const { id, position, body } = document;
    if (isUnreadable(body)) damaged.note(looked, { id, position, body });
    return !isOutOfService(body);
  }

  function bodyOf(looked: CollectionSpec, document: StoredDocument<B>): B {
    if (!isShown(looked, document))
      throw new UnavailableError(
        `${name}: document ${document.id} is out of service: ${isUnreadable(document.body) ? document.body.$unreadable : 'it is quarantined'}`,
      );
    return document.body;
  }

  /** Whether another build is in use by now. @throws UnavailableError before any has caught up */
  async function shouldLookAgain(looked: CollectionSpec): Promise<boolean> {
    const wasComplete = complete;
    if (!complete || performance.now() - knownAt > SURE_MS) await ask();
    requireComplete();
    return !wasComplete || collection !== looked;
  }

  function requireComplete(): void {
    if (!complete) throw new UnavailableError(`${name} is still being built`);
  }

  const finals = projection.isFinal && finalDocuments<B>(projection.isFinal.bind(projection));

  async function get(id: string): Promise<B | undefined> {
    const asked = refreshed();
    if (asked !== undefined) await asked;
    const of = edition;
    // Documents in memory are used only while the build in use is known, so that repairs and swaps show within a
    // second.
    const kept = complete && performance.now() - knownAt < KNOWN_MS ? finals?.get(id, of) : undefined;
    if (kept !== undefined) return kept;
    const looked = collection;
    const document = await store.get<B>(looked, id);
    if (document !== undefined) {
      const body = bodyOf(looked, document);
      if (complete) finals?.keep(id, body, of);
      return body;
    }
    return (await shouldLookAgain(looked)) ? get(id) : undefined;
  }

  async function getMany(ids: readonly string[]): Promise<(B | undefined)[]> {
    if (ids.length === 0) return [];
    const asked = refreshed();
    if (asked !== undefined) await asked;
    const looked = collection;
    const documents = await store.getMany<B>(looked, ids);
    if (documents.includes(undefined) && (await shouldLookAgain(looked))) return getMany(ids);
    return documents.map((document) => (document === undefined ? undefined : bodyOf(looked, document)));
  }

  async function wholeCollection(): Promise<CollectionSpec> {
    const asked = refreshed();
    if (asked !== undefined) await asked;
    if (!complete) await ask();
    requireComplete();
    return collection;
  }

  return {
    get,
    getMany,
    async find(query) {
      const looked = await wholeCollection();
      if (looked.indexes !== projection.indexes && !isIndexed(looked, query))
        throw new UnavailableError(`${name}: the build in use lacks an index`);
      // A short page means the end to the caller, so quarantined documents are replaced by later ones.
      for (let { limit } = query; ; limit *= 2) {
        const found = await store.find<B>(looked, limit === undefined ? query : { ...query, limit });
        const shown = found.filter((document) => isShown(looked, document));
        if (limit === undefined || found.length < limit || shown.length >= (query.limit ?? 0))
          return shown.slice(0, query.limit).map(({ id, body }) => ({ id, body }));
      }
    },
    edition: () => edition,
    folded: async () => store.checkpoint(checkpointName(await wholeCollection())),
    async reached(position, timeoutMs, patient) {
      if (timeoutMs > 0 && patient === undefined) hurry?.(position);
      const asked = refreshed();
      if (asked !== undefined) await asked;
      const waited = collection;
      if (await store.reached(checkpointName(waited), position, timeoutMs)) return true;
      // A build that went out of use during the wait does not advance.
      await ask();
      return collection !== waited && store.reached(checkpointName(collection), position, 0);
    },
  };
}
