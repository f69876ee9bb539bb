/**
 * The whole catalogue in memory, joined by commands and queries. Each API process has its own, at most half a second
 * behind the read model. Where a refusal depends on it while the read model is behind, the rest is read from the log.
 */
import { pauseForBeats } from '../../lib/async/beats.js';
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

interface CatalogueViewOptions {
  readonly model: ReadModel<CatalogueDocument>;
  readonly events: Pick<EventStore, 'read' | 'readAll'>;
  /** Milliseconds between two reads; default 200. */
  readonly pollMs?: number;
  readonly followers: Pick<Followers, 'start'>;
}

const POLL_MS = 500;
/** The longest wait before a failed read is repeated. */
const RETRY_MS = 1_000;
const PAGE = 1_000;
const LOGGED = { types: catalogueProjection.types, streams: CATALOGUE_KINDS.map((kind) => `${kind}-`) };
/** A value below every position. No query finds a quarantined document, whose body has no position. */
const BEFORE_ALL = '';

/** The catalogue in memory, and what of the read model and of the log it holds. */
interface View extends Pick<CatalogueViewOptions, 'model' | 'events'> {
  state: CatalogueState;
  /** Streams of entries whose documents are out of service. */
  broken: readonly string[];
  /** Edition of the read model that the documents in `state` come from. */
  edition: string | undefined;
  present: Catalogue | undefined;
  /** Position up to which all changed documents are in `state`. */
  settled: Position | undefined;
  /**
   * Position of the last known change. Documents with earlier changes may be stored after it, until the projection has
   * reached it.
   */
  latest: Position | undefined;
  /** Position up to which the whole log is in `state`, where that is known. */
  readTo: Position | undefined;
  closed: boolean;
  /** The last read that was started; it never rejects. */
  running: Promise<void>;
}

/** Polls the read model until closed. A failed read leaves the catalogue as it was. */
export function openCatalogueView({
  model,
  events,
  pollMs = POLL_MS,
  followers,
}: CatalogueViewOptions): PolledCatalogueView {
  const view: View = {
    model,
    events,
    state: catalogueState(),
    broken: [],
    edition: undefined,
    present: undefined,
    settled: undefined,
    latest: undefined,
    readTo: undefined,
    closed: false,
    running: Promise.resolve(),
  };
  const refresh = inTurn(view, catchUp);
  const follower = followers.start(
    'catalogue',
    async ({ signal, well, onTrouble }) => {
      for (; !signal.aborted; await pauseForBeats(pollMs, signal)) {
        try {
          await refresh();
          well();
        } catch (error) {
          if (!(error instanceof UnavailableError)) throw error;
          // Readiness reports a read model that is still being built.
          if (view.present !== undefined) onTrouble(error);
        }
      }
    },
    { restartMs: [pollMs, Math.max(pollMs, RETRY_MS)] },
  );

  return {
    current() {
      if (view.present === undefined) throw new UnavailableError('the catalogue has not been read yet');
      return view.present;
    },
    refresh,
    readOn: inTurn(view, catchUpWithLog),
    async close() {
      view.closed = true;
      await follower.close();
      await view.running;
    },
  };
}

/** Runs a kind of read one call after the other; callers share the next run until it starts. */
function inTurn(view: View, work: (of: View) => Promise<void>): () => Promise<void> {
  let coming: Promise<void> | undefined;
  return () =>
    (coming ??= (() => {
      const next = view.running.then(() => {
        coming = undefined;
        return view.closed ? undefined : work(view);
      });
      // Later reads continue after a failure; the caller gets the error.
      view.running = next.catch((error: unknown) => {
        // Some documents may be missing, so the next read loads all.
        if (!(error instanceof UnavailableError)) view.edition = undefined;
      });
      return next;
    })());
}

async function catchUp(view: View): Promise<void> {
  await (view.present === undefined || view.edition !== view.model.edition() ? load(view) : update(view));
}

async function catchUpWithLog(view: View): Promise<void> {
  const folded = await view.model.folded();
  await catchUp(view);
  if (view.readTo === undefined || (folded !== undefined && folded > view.readTo)) view.readTo = folded;
  for await (const batch of view.events.readAll(view.readTo, LOGGED)) {
    view.present = (await view.state.apply(foldedOnto(view.state, batch.events))) ?? view.present;
    view.readTo = batch.position;
  }
}

async function load(view: View): Promise<void> {
  const { model } = view;
  const state = catalogueState();
  const edition = model.edition();
  view.broken = await model.outOfService();
  const [last] = await model.find({ where: { changed: { gt: BEFORE_ALL } }, sort: [['changed', -1]], limit: 1 });
  const latest = last?.body.changed;
  const whole = latest !== undefined && (await model.reached(latest, 0));
  await state.apply([...(await readAfter(model, 'added', undefined)), ...(await brokenEntries(view))]);
  view.state = state;
  view.present = state.catalogue();
  view.edition = edition;
  view.readTo = undefined;
  view.latest = latest;
  view.settled = whole ? latest : undefined;
}

async function update(view: View): Promise<void> {
  const { model, latest, settled } = view;
  const reached = latest !== undefined && latest !== settled && (await model.reached(latest, 0));
  const documents = await readAfter(model, 'changed', settled);
  view.present = (await view.state.apply([...documents, ...(await brokenEntries(view))])) ?? view.present;
  view.latest = documents.at(-1)?.changed ?? latest;
  if (reached) view.settled = latest;
}

/**
 * Entries whose documents are out of service, from their streams: without them, tills would be refused the gifts of a
 * brand. An entry stays as it was before an event that can't be folded.
 */
async function brokenEntries(view: View): Promise<CatalogueDocument[]> {
  const { model, events } = view;
  const documents: CatalogueDocument[] = [];
  // A repair returns a document to service only after it has raised the edition.
  if (view.broken.length > 0) view.broken = await model.outOfService();
  for (const stream of view.broken) {
    let document: CatalogueDocument | undefined;
    try {
      for (const event of await events.read(stream)) document = catalogueProjection.evolve(document, event, stream, 0);
    } catch (error) {
      if (error instanceof UnavailableError) throw error;
    }
    if (document !== undefined) documents.push(document);
  }
  return documents;
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
