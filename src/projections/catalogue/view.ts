/**
 * The whole catalogue in memory, joined by commands and queries. Each API process has its own, at most 250 ms behind
 * the read model. Where a refusal depends on it while the read model is behind, the rest is read from the log.
 */
import { pause } from '../../lib/async/pause.js';
import { CATALOGUE_KINDS } from '../../domain/catalogue.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { type CatalogueDocument, catalogueProjection } from './catalogue.js';
import { type CatalogueState, catalogueState } from './state.js';
import type { Catalogue } from './wholeCatalogue.js';

export interface CatalogueView {
  /** @throws UnavailableError before the first load */
  current(): Catalogue;
  close(): Promise<void>;
}

export interface PolledCatalogueView extends CatalogueView {
  /** Reads the read model now. @throws UnavailableError */
  refresh(): Promise<void>;
  /** Reads the read model now, and from the log all that the read model lacks. @throws UnavailableError */
  readOn(): Promise<void>;
}

export interface CatalogueViewOptions {
  readonly model: ReadModel<CatalogueDocument>;
  readonly events: Pick<EventStore, 'readAll'>;
  /** Milliseconds between two reads; default 200. */
  readonly pollMs?: number;
  readonly followers: Pick<Followers, 'start'>;
}

const POLL_MS = 200;
/** The longest wait before a failed read is repeated. */
const RETRY_MS = 1_000;
const PAGE = 1_000;
const LOGGED = { types: catalogueProjection.types, streams: CATALOGUE_KINDS.map((kind) => `${kind}-`) };
/** A value below every position. No query finds a quarantined document, whose body has no position. */
const BEFORE_ALL = '';

/** Polls the read model until closed. A failed read leaves the catalogue as it was. */
export function openCatalogueView({
  model,
  events,
  pollMs = POLL_MS,
  followers,
}: CatalogueViewOptions): PolledCatalogueView {
  let state = catalogueState();
  /** Edition of the read model that the documents in `state` come from. */
  let edition: string | undefined;
  let present: Catalogue | undefined;
  /** Position up to which all changed documents are in `state`. */
  let settled: Position | undefined;
  /**
   * Position of the last known change. Documents with earlier changes may be stored after it, until the projection has
   * reached it.
   */
  let latest: Position | undefined;
  /** Position up to which the whole log is in `state`, where that is known. */
  let readTo: Position | undefined;
  let closed = false;

  const load = async (): Promise<void> => {
    const loading = catalogueState();
    const loaded = model.edition();
    const [last] = await model.find({ where: { changed: { gt: BEFORE_ALL } }, sort: [['changed', -1]], limit: 1 });
    const position = last?.body.changed;
    const whole = position !== undefined && (await model.reached(position, 0));
    await loading.apply(await readAfter(model, 'added', undefined));
    state = loading;
    present = loading.catalogue();
    edition = loaded;
    readTo = undefined;
    latest = position;
    settled = whole ? position : undefined;
  };
  const update = async (): Promise<void> => {
    const reached = latest !== undefined && latest !== settled && (await model.reached(latest, 0));
    const upTo = latest;
    const documents = await readAfter(model, 'changed', settled);
    present = (await state.apply(documents)) ?? present;
    latest = documents.at(-1)?.changed ?? latest;
    if (reached) settled = upTo;
  };

  const takeOver = async (): Promise<void> =>
    present === undefined || edition !== model.edition() ? load() : update();
  const takeOverAndReadOn = async (): Promise<void> => {
    const folded = await model.folded();
    await takeOver();
    if (readTo === undefined || (folded !== undefined && folded > readTo)) readTo = folded;
    for await (const batch of events.readAll(readTo, LOGGED)) {
      present = (await state.apply(foldedOnto(state, batch.events))) ?? present;
      readTo = batch.position;
    }
  };

  let running: Promise<void> = Promise.resolve();
  /** Runs the work one call after the other; callers share the next run until it starts. */
  const inTurn = (work: () => Promise<void>): (() => Promise<void>) => {
    let coming: Promise<void> | undefined;
    return () =>
      (coming ??= (() => {
        const next = running.then(() => {
          coming = undefined;
          return closed ? undefined : work();
        });
        // Later reads continue after a failure; the caller gets the error.
        running = next.catch((error: unknown) => {
          // Some documents may be missing, so the next read loads all.
          if (!(error instanceof UnavailableError)) edition = undefined;
        });
        return next;
      })());
  };
  const look = inTurn(takeOver);
  const follower = followers.start(
    'catalogue',
    async ({ signal, well, onTrouble }) => {
      for (; !signal.aborted; await pause(pollMs, signal)) {
        try {
          await look();
          well();
        } catch (error) {
          if (!(error instanceof UnavailableError)) throw error;
          // Readiness reports a read model that is still being built.
          if (present !== undefined) onTrouble(error);
        }
      }
    },
    { restartMs: [pollMs, Math.max(pollMs, RETRY_MS)] },
  );

  return {
    current() {
      if (present === undefined) throw new UnavailableError('the catalogue has not been read yet');
      return present;
    },
    refresh: look,
    readOn: inTurn(takeOverAndReadOn),
    async close() {
      closed = true;
      await follower.close();
      await running;
    },
  };
}

/** @throws UnavailableError where an event can't be folded: the projector takes its document out of service */
function foldedOnto(state: CatalogueState, events: readonly RecordedEvent[]): CatalogueDocument[] {
  const changed = new Map<string, CatalogueDocument>();
  for (const event of events) {
    const { stream, position } = event;
    const before = changed.get(stream) ?? state.document(stream);
    if (before !== undefined && before.changed >= position) continue;
    try {
      changed.set(stream, catalogueProjection.evolve(before, event, stream, 0));
    } catch (error) {
      throw new UnavailableError(`${stream} can't be folded: ${String(error)}`);
    }
  }
  return [...changed.values()];
}

/** Documents after a position, in the order of `field`. Pages keep a query from blocking the event loop. */
async function readAfter(
  model: ReadModel<CatalogueDocument>,
  field: 'added' | 'changed',
  after: Position = BEFORE_ALL,
): Promise<CatalogueDocument[]> {
  const documents: CatalogueDocument[] = [];
  for (;;) {
    const page = await model.find({
      where: { [field]: { gt: documents.at(-1)?.[field] ?? after } },
      sort: [[field, 1]],
      limit: PAGE,
    });
    for (const { body } of page) documents.push(body);
    if (page.length < PAGE) return documents;
  }
}
