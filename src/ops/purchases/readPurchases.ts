/** Finds purchases by buyer, product, price, day, status or charge (docs/support.md#finding-purchases). */
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { transactionStatus } from '../../domain/purchase/status.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Condition } from '../../ports/readStore.js';
import { boughtBy, namedIn, orderedBy } from '../../projections/byUser.js';
import type { ReadModels } from '../../projections/index.js';
import { reversalsProjection } from '../../projections/reversals.js';
import { documentsListed } from '../../entities/documentsListed.js';
import { TIME_KEY_LENGTH, timeKey, timeOfKey } from '../../projections/timeKey.js';
import { type TransactionDocument, transactionsProjection } from '../../projections/transactions.js';
import { foldedBy, type FoldedOptions, NO_BUILD } from '../readmodels/foldedBy.js';
import { matches, type PurchaseFilter } from './purchaseFilter.js';
import { type PurchaseRow, purchaseRows } from './purchaseRows.js';
import { purchasesCharged } from './purchasesCharged.js';

export interface PurchaseDeps extends FoldedOptions {
  readonly events: Pick<EventStore, 'read' | 'readAll' | 'end'>;
  readonly models: Pick<ReadModels, 'transactions' | 'byUser' | 'reversals'>;
}

export interface PurchaseBatch {
  readonly rows: readonly PurchaseRow[];
  /** Position up to which purchases were looked at; null: there are no more. */
  readonly next: string | null;
}

/** Position between purchases: a time, and the id that tells purchases of that time apart. */
interface Place {
  readonly at: string;
  readonly id: string;
}

/** Pattern of `PurchaseBatch.next`. New purchases come before every position. */
export const PURCHASE_POSITION = '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z\\.[0-9a-f]{32}$';

const TIME_LENGTH = '2026-05-04T12:30:00.000Z'.length;

export const purchasePosition = ({ at, id }: Place): string => `${at}.${id}`;
const placeOf = (text: string): Place => ({ at: text.slice(0, TIME_LENGTH), id: text.slice(TIME_LENGTH + 1) });

/** Number of purchases that are looked at together: few at first, since a page often needs no more. */
const AT_FIRST = 100;
const AT_ONCE = 500;
/** Most purchases held in memory that read models have not folded. */
const MOST_UNFOLDED = 200_000;
const BOUGHT: readonly string[] = ['GiftsPurchased' satisfies GiftsPurchased['type']];
/** Types of the events that a status follows from. */
const OF_STATUS = [...new Set([...transactionsProjection.types, ...reversalsProjection.types])];

/**
 * Purchases that match, the latest first, batch by batch. A batch may have no rows.
 * @param after where an earlier reading ended
 * @throws UnavailableError, also while read models are too far behind the log
 */
export async function* readPurchases(
  deps: PurchaseDeps,
  filter: PurchaseFilter,
  after?: string,
  signal?: AbortSignal,
): AsyncGenerator<PurchaseBatch> {
  const sources = await sourcesOf(deps, filter, signal);
  let place = after === undefined ? undefined : placeOf(after);
  for (let count = AT_FIRST; signal?.aborted !== true; count = AT_ONCE) {
    const scanned = await merged(sources, place, count);
    const ids = scanned.flatMap(({ id, matches }) => (matches ? [id] : []));
    const rows = await purchaseRows(deps.events, ids);
    place = scanned.at(-1);
    const ended = place === undefined || scanned.length < count;
    yield {
      rows: rows.filter(({ status }) => filter.status === undefined || status === filter.status),
      next: ended || place === undefined ? null : purchasePosition(place),
    };
    if (ended) return;
  }
}

interface Scanned extends Place {
  readonly matches: boolean;
}

/** Reads the first `count` purchases after a position, the latest first; fewer: there are no more. */
type Source = (after: Place | undefined, count: number) => Promise<readonly Scanned[]>;

async function sourcesOf(
  deps: PurchaseDeps,
  filter: PurchaseFilter,
  signal: AbortSignal | undefined,
): Promise<readonly Source[]> {
  const { events, models } = deps;
  if (filter.charge !== undefined) return [listed(await chargedPurchases(events, filter))];
  if ((await events.end()) === undefined) return [];
  const folded = await foldedBy([models.transactions, models.byUser, models.reversals], deps);
  if (folded === NO_BUILD) return [listed((await unfoldedPurchases(events, filter, undefined, BOUGHT, signal)).bought)];
  const types = filter.status === undefined ? BOUGHT : OF_STATUS;
  const unfolded = await unfoldedPurchases(events, filter, folded, types, signal);
  const source = filter.buyer === undefined ? byTime(models, filter, unfolded) : byBuyer(models, filter, unfolded);
  return unfolded.bought.length === 0 ? [source] : [listed(unfolded.bought), source];
}

async function chargedPurchases(events: PurchaseDeps['events'], filter: PurchaseFilter): Promise<readonly Place[]> {
  const found: Place[] = [];
  for await (const { data, at } of purchasesCharged(events, filter.charge ?? ''))
    if (matches(data, at, filter)) found.push({ at, id: data.transaction_id });
  return found;
}

/** What read models have not folded. */
interface Unfolded {
  /** Purchases that match all filters but the status. */
  readonly bought: readonly Place[];
  /** Ids of the purchases whose status may be another one by now. */
  readonly changed: ReadonlySet<string>;
}

async function unfoldedPurchases(
  events: PurchaseDeps['events'],
  filter: PurchaseFilter,
  folded: Position | undefined,
  types: readonly string[],
  signal: AbortSignal | undefined,
): Promise<Unfolded> {
  const bought: Place[] = [];
  const changed = new Set<string>();
  for await (const batch of events.readAll(folded, { types, streams: [transactionStream('')] }, { signal })) {
    for (const { type, stream, data, at } of batch.events) {
      if (!BOUGHT.includes(type)) changed.add(idOf(stream));
      else if (matches(data as GiftsPurchased['data'], at, filter)) bought.push({ at, id: idOf(stream) });
    }
    if (bought.length + changed.size > MOST_UNFOLDED)
      throw new UnavailableError('purchases: the read model is too far behind the log; narrow the search');
  }
  return { bought, changed };
}

/** Source of purchases that are known; all of them match. */
function listed(places: readonly Place[]): Source {
  const sorted = places.toSorted(latestFirst).map((place) => ({ ...place, matches: true }));
  return async (after, count) => {
    const start = after === undefined ? 0 : sorted.findIndex((place) => latestFirst(place, after) > 0);
    return start < 0 ? [] : sorted.slice(start, start + count);
  };
}

/** All purchases of the range of time, by the read model's index. */
function byTime(
  { transactions, reversals }: PurchaseDeps['models'],
  filter: PurchaseFilter,
  unfolded: Unfolded,
): Source {
  const { from, to } = filter;
  const lowest = from === null ? {} : { gte: from };
  const find = async (where: Readonly<Record<string, Condition>>, by: string, limit: number) =>
    transactions.find({ where, sort: [[by, -1]], limit });
  return async (after, count) => {
    const bound = after === undefined || (to !== null && to < after.at) ? undefined : after;
    const highest = bound === undefined ? (to === null ? {} : { lte: to }) : { lt: bound.at };
    const range = { ...lowest, ...highest };
    const found =
      bound === undefined || (from !== null && bound.at < from)
        ? []
        : await find({ created_at: bound.at, id: { lt: bound.id } }, 'id', count);
    if (found.length < count)
      found.push(
        ...(await find(
          Object.keys(range).length === 0 ? {} : { created_at: range },
          'created_at',
          count - found.length,
        )),
      );
    return scannedIn(
      reversals,
      found.map(({ id, body }) => ({ id, at: body.created_at, body })),
      filter,
      unfolded,
    );
  };
}

/** Purchases of one buyer. */
function byBuyer(
  { transactions, byUser, reversals }: PurchaseDeps['models'],
  filter: PurchaseFilter,
  unfolded: Unfolded,
): Source {
  const { from, to, buyer = '', reference_id } = filter;
  const prefix = reference_id === undefined ? boughtBy(buyer) : orderedBy(buyer, reference_id);
  const first = prefix + (from === null ? '' : timeKey(from));
  // The sign follows all that time keys are made of.
  const end = to === null ? `${prefix}~` : prefix + timeKey(new Date(Date.parse(to) + 1).toISOString());
  return async (after, count) => {
    const next = after === undefined ? end : `${prefix}${timeKey(after.at)}/${after.id}`;
    const where = { id: { gte: first, lt: next < end ? next : end } };
    const places = (await byUser.find({ where, sort: [['id', -1]], limit: count })).map(({ id }) => ({
      id: namedIn(id),
      at: timeOfKey(id.slice(prefix.length, prefix.length + TIME_KEY_LENGTH)),
    }));
    const bodies = await documentsListed(
      transactions,
      places.map(({ id }) => id),
    );
    const found = places.map((place, index) => {
      const body = bodies[index];
      if (body === undefined) throw new UnavailableError('the read model does not know all purchases yet');
      return { ...place, body };
    });
    return scannedIn(reversals, found, filter, unfolded);
  };
}

/**
 * Which purchases match; the status is left to their streams where it has changed since, or its refunds are out of
 * service.
 * @param found `body`: null for a purchase that is out of service
 */
async function scannedIn(
  reversals: PurchaseDeps['models']['reversals'],
  found: readonly (Place & { readonly body: TransactionDocument | null })[],
  filter: PurchaseFilter,
  { changed }: Unfolded,
): Promise<readonly Scanned[]> {
  const { status } = filter;
  const refunded =
    status === undefined
      ? []
      : await documentsListed(
          reversals,
          found.map(({ id }) => id),
        );
  return found.map(({ id, at, body }, index) => {
    const money = refunded[index];
    const mayBe = (one: TransactionDocument): boolean =>
      status === undefined || changed.has(id) || money === null || transactionStatus(one, money) === status;
    return { id, at, matches: body !== null && matches(body, at, filter) && mayBe(body) };
  });
}

async function merged(
  sources: readonly Source[],
  after: Place | undefined,
  count: number,
): Promise<readonly Scanned[]> {
  const [only, ...others] = await Promise.all(sources.map(async (source) => source(after, count)));
  if (others.length === 0) return only ?? [];
  const all = [only ?? [], ...others].flat().sort(latestFirst);
  return all.filter((one, index) => index === 0 || one.id !== all[index - 1]?.id).slice(0, count);
}

function latestFirst(one: Place, other: Place): number {
  if (one.at !== other.at) return one.at < other.at ? 1 : -1;
  return one.id === other.id ? 0 : one.id < other.id ? 1 : -1;
}
