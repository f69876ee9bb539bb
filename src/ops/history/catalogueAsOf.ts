import { CATALOGUE_KINDS } from '../../domain/catalogue.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import { type CatalogueDocument, catalogueProjection } from '../../projections/catalogue/catalogue.js';
import { catalogueState } from '../../projections/catalogue/state.js';
import type { Catalogue } from '../../projections/catalogue/wholeCatalogue.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';

const REACH_MS = 1_000;
const PAGE = 1_000;
const PARALLEL_READS = 32;

/**
 * The catalogue at a position of the log. Entries that have not changed since come from the read model, others from
 * their streams. Where the read model has not reached the position, the whole log is read. @throws UnavailableError
 */
export async function catalogueAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  position: Position,
): Promise<Catalogue> {
  const state = catalogueState();
  await state.apply((await knownAsOf(events, model, position)) ?? (await foldedAsOf(events, position)));
  return state.catalogue();
}

async function knownAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  position: Position,
): Promise<CatalogueDocument[] | undefined> {
  try {
    // A build that does not serve yet may have reached the position, too: then reading documents throws.
    return (await model.reached(position, REACH_MS)) ? await documentsAsOf(events, model, position) : undefined;
  } catch (error) {
    // Where the log is unavailable, too, reading it throws.
    if (!(error instanceof UnavailableError)) throw error;
    return undefined;
  }
}

async function documentsAsOf(
  events: EventStore,
  model: ReadModel<CatalogueDocument>,
  position: Position,
): Promise<CatalogueDocument[]> {
  const then: CatalogueDocument[] = [];
  let changed: string[] = [];
  const refold = async (): Promise<void> => {
    const streams = await Promise.all(changed.map(async (stream) => events.read(stream)));
    for (const stream of streams) {
      const document = foldedUpTo(undefined, stream, position);
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

async function foldedAsOf(events: EventStore, position: Position): Promise<CatalogueDocument[]> {
  const documents = new Map<string, CatalogueDocument>();
  const streams = CATALOGUE_KINDS.map((kind) => `${kind}-`);
  for await (const batch of events.readAll(undefined, { types: catalogueProjection.types, streams })) {
    for (const event of batch.events) {
      const document = foldedUpTo(documents.get(event.stream), [event], position);
      if (document !== undefined) documents.set(event.stream, document);
    }
    if (batch.position >= position) break;
  }
  return [...documents.values()];
}

function foldedUpTo(
  before: CatalogueDocument | undefined,
  events: readonly RecordedEvent[],
  position: Position,
): CatalogueDocument | undefined {
  return events
    .filter((event) => event.position <= position && catalogueProjection.types.includes(event.type))
    .reduce((document, event) => catalogueProjection.evolve(document, event, event.stream, 0), before);
}
