/** How queries and commands read a read model, whichever build is in use and whichever process keeps it. */
import type { Position } from '../../ports/eventStore.js';
import type { Body, CollectionSpec, Query, ReadStore, StoredDocument } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { checkpointName, collectionOf, type Projection } from './projection.js';
import { editionOf } from './maintenance/repairOrders.js';
import { finalDocuments } from './finalDocuments.js';
import { damagedDocuments, isOutOfService, isUnreadable } from './quarantine.js';

/** A read model. Every method throws UnavailableError when the read store can't be reached. */
export interface ReadModel<B extends Body> {
  /**
   * @throws UnavailableError also for a quarantined document, and for a missing one while no build has ever caught up
   */
  get(id: string): Promise<B | undefined>;
  /** The documents in the order of `ids`; throws as `get` does. */
  getMany(ids: readonly string[]): Promise<(B | undefined)[]>;
  /**
   * Documents with their ids, without quarantined ones, which count for no limit. @throws UnavailableError also while
   * no build has ever caught up
   */
  find(query: Query): Promise<{ readonly id: string; readonly body: B }[]>;
  /**
   * Changes, a second late at most, when documents may have changed without an event: another build is in use, or some
   * were repaired. Documents kept in memory are to be read anew then.
   */
  edition(): string;
  /** Waits until everything up to `position` is folded, at most `timeoutMs`. @returns whether it is */
  reached(position: Position, timeoutMs: number): Promise<boolean>;
  /**
   * A document by id shows what its own stream holds in the log (`readYourWrites.ts`): who appends to it need not wait.
   */
  readonly readYourWrites?: true;
}

/** How long the build in use is taken as known, in ms. */
const KNOWN_MS = 1_000;
/** The same where a document is said not to exist. */
const SURE_MS = 100;
/**
 * After so long, in ms, it is asked for before anything is read: a build that readers have left is not kept up to date
 * for ever.
 */
const OLD_MS = 10_000;

/** Reads the build in use; before any has caught up, that of this code. Nothing is kept open. */
export function openReadModel<B extends Body>(
  store: ReadStore,
  projection: Pick<Projection<B>, 'name' | 'version' | 'indexes' | 'isFinal'>,
): ReadModel<B> {
  const { name } = projection;
  let collection: CollectionSpec = collectionOf(projection);
  /** Some build has caught up since the store was empty. */
  let complete = false;
  let corrections = 0;
  let knownAt = Number.NEGATIVE_INFINITY;
  let asking: Promise<void> | undefined;

  /** Asks which build is in use; simultaneous callers share one question. */
  function ask(): Promise<void> {
    asking ??= (async () => {
      try {
        const asked = performance.now();
        const [active, corrected] = await Promise.all([store.active(name), editionOf(store, name)]);
        corrections = corrected;
        complete = active !== undefined;
        if (active !== undefined && active !== collection.version) collection = { ...collection, version: active };
        knownAt = asked;
      } finally {
        asking = undefined;
      }
    })();
    return asking;
  }

  /**
   * Has the build in use asked for about every second. Only the first read, and the first after a long pause, wait for
   * it.
   */
  function refreshed(): Promise<void> | undefined {
    const age = performance.now() - knownAt;
    if (age < KNOWN_MS) return undefined;
    if (age > OLD_MS) return ask();
    // The failure shows in what is read next.
    ask().catch(() => undefined);
    return undefined;
  }

  const damaged = damagedDocuments(store.records);

  /** Whether it may be shown. A document that is damaged in the store is listed, so that an alert tells of it. */
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

  /**
   * Called when something was not found: whether another build is in use by now. @throws UnavailableError while none
   * has ever caught up
   */
  async function shouldLookAgain(looked: CollectionSpec): Promise<boolean> {
    const wasComplete = complete;
    if (!complete || performance.now() - knownAt > SURE_MS) await ask();
    requireComplete();
    // What has become complete since may hold it by now.
    return !wasComplete || collection !== looked;
  }

  function requireComplete(): void {
    if (!complete) throw new UnavailableError(`${name} is still being built`);
  }

  const edition = (): string => `${collection.version}/${corrections}`;
  const finals = projection.isFinal && finalDocuments<B>(projection.isFinal.bind(projection));

  async function get(id: string): Promise<B | undefined> {
    const asked = refreshed();
    if (asked !== undefined) await asked;
    const of = finals === undefined ? '' : edition();
    // Kept only as long as the build in use is known: repairs and swaps show within a second.
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
      // A short page reads as the last one: others take the place of those left out.
      for (let { limit } = query; ; limit *= 2) {
        const found = await store.find<B>(looked, limit === undefined ? query : { ...query, limit });
        const shown = found.filter((document) => isShown(looked, document));
        if (limit === undefined || found.length < limit || shown.length >= (query.limit ?? 0))
          return shown.slice(0, query.limit).map(({ id, body }) => ({ id, body }));
      }
    },
    edition,
    async reached(position, timeoutMs) {
      const asked = refreshed();
      if (asked !== undefined) await asked;
      const waited = collection;
      if (await store.reached(checkpointName(waited), position, timeoutMs)) return true;
      // A build that went out of use meanwhile is not advanced any more.
      await ask();
      return collection !== waited && store.reached(checkpointName(collection), position, 0);
    },
  };
}
