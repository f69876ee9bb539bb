import { CATALOGUE_KINDS } from '../../domain/catalogue.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type CatalogueDocument, catalogueProjection } from '../../projections/catalogue/catalogue.js';
import { catalogueState } from '../../projections/catalogue/state.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { type AsOf, streamAsOf } from '../ranges/timeBounds.js';

const REACH_MS = 1_000;
const PAGE = 1_000;
const PARALLEL_READS = 32;

/**
 * The catalogue as of a time. Entries that have not changed since come from the read model, others from their streams.
 * Where the read model has not reached the position, or events before it were stamped later, the whole log is read.
 * @throws UnavailableError
 */
export async function catalogueAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  then: AsOf,
): Promise<Catalogue> {
  const state = catalogueState();
  const known = then.stampedLater === 0 ? await knownAsOf(events, model, then) : undefined;
  await state.apply(known ?? (await foldedAsOf(events, then)));
  return state.catalogue();
}

async function knownAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  then: AsOf,
): Promise<CatalogueDocument[] | undefined> {
  try {
    // A build that does not serve yet may have reached the position, too: then reading documents throws.
    return (await model.reached(then.position, REACH_MS)) ? await documentsAsOf(events, model, then) : undefined;
  } catch (error) {
    // The log is read instead; where it is unavailable, too, reading it throws.
    if (!(error instanceof UnavailableError)) throw error;
    return undefined;
  }
}

async function documentsAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  asOf: AsOf,
): Promise<CatalogueDocument[]> {
  const { position } = asOf;
  const then: CatalogueDocument[] = [];
  let changed: string[] = [];
  const refold = async (): Promise<void> => {
    const streams = await Promise.all(changed.map(async (stream) => events.read(stream)));
    for (const stream of streams) {
      const document = folded(undefined, streamAsOf(stream, asOf));
      if (document !== undefined) then.push(document);
    }
    changed = [];
  };
  for (let added = ''; ;) {
    const page = await model.find({
      where: { added: { gt: added, lte: position } },
      sort: [['added', 1]],
      limit: PAGE,
    });
    for (const { id, body } of page) {
      added = body.added;
      if (body.changed <= position) then.push(body);
      else if (changed.push(id) >= PARALLEL_READS) await refold();
    }
    if (page.length < PAGE) break;
  }
  await refold();
  return then;
}

async function foldedAsOf(events: EventStore, { time, position }: AsOf): Promise<CatalogueDocument[]> {
  const documents = new Map<string, CatalogueDocument>();
  /** Streams whose first event is of a later time: they do not exist yet. */
  const later = new Set<string>();
  const streams = CATALOGUE_KINDS.map((kind) => `${kind}-`);
  for await (const batch of events.readAll(undefined, { types: catalogueProjection.types, streams })) {
    for (const event of batch.events) {
      if (event.at > time && !documents.has(event.stream)) later.add(event.stream);
      if (event.at > time || event.position > position || later.has(event.stream)) continue;
      const document = folded(documents.get(event.stream), [event]);
      if (document !== undefined) documents.set(event.stream, document);
    }
    if (batch.position >= position) break;
  }
  return [...documents.values()];
}

function folded(
  before: CatalogueDocument | undefined,
  events: readonly RecordedEvent[],
): CatalogueDocument | undefined {
  return events
    .filter(({ type }) => catalogueProjection.types.includes(type))
    .reduce((document, event) => catalogueProjection.evolve(document, event, event.stream, 0), before);
}
