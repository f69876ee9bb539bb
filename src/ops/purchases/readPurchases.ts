/** Finds purchases by buyer, product, price, day, status or charge (docs/support.md#finding-purchases). */
import { accountStream } from '../../domain/account.js';
import { catalogueStream } from '../../domain/catalogue.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { type TransactionStatus, transactionStatus } from '../../domain/purchase/status.js';
import type { EventStore } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { Condition } from '../../ports/readStore.js';
import { boughtBy, namedIn, orderedBy } from '../../projections/byUser.js';
import type { ReadModels } from '../../projections/index.js';
import { timeKey } from '../../projections/timeKey.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import type { TimeRange } from '../ranges/range.js';
import { foldedBy, type FoldedOptions, NO_BUILD } from '../readmodels/foldedBy.js';
import { isWithin } from '../ranges/timeBounds.js';
import { type PurchaseRow, purchaseRows } from './purchaseRows.js';
import { purchasesCharged } from './purchasesCharged.js';

/** Filters, all of which must match. */
export interface PurchaseFilter extends Pick<TimeRange, 'from' | 'to'> {
  /** Id of the buyer. */
  readonly buyer?: string | undefined;
  /** Id of the product. */
  readonly product?: string | undefined;
  readonly status?: TransactionStatus | undefined;
  /** Least price of one gift, in pence. */
  readonly min?: number | undefined;
  /** Highest price of one gift, in pence. */
  readonly max?: number | undefined;
  /** The caller's own name for the purchase (docs/api/purchases.md#order-references). */
  readonly reference_id?: string | undefined;
  /** The provider's id of the charge; found by one reading of the log. */
  readonly charge?: string | undefined;
}

/** What each filter chooses, in words for help and API. */
export const PURCHASE_FILTERS = {
  buyer: 'purchases of this user, by the id',
  product: 'purchases of this product, by the id',
  status: 'purchases of this status',
  min: 'purchases whose gifts cost at least so many pence each',
  max: 'purchases whose gifts cost at most so many pence each',
  reference_id: 'purchases that were made with this order reference',
  charge: "the purchase of this charge, by the payment provider's id",
} as const satisfies Readonly<Record<Exclude<keyof PurchaseFilter, 'from' | 'to'>, string>>;

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

export const positionText = ({ at, id }: Place): string => `${at}.${id}`;
const placeOf = (text: string): Place => ({ at: text.slice(0, TIME_LENGTH), id: text.slice(TIME_LENGTH + 1) });

/** Number of purchases that are looked at together: few at first, since a page often needs no more. */
const AT_FIRST = 100;
const AT_ONCE = 500;
/** Most purchases held in memory that read models have not folded. */
const MOST_UNFOLDED = 200_000;
const PURCHASES = { types: ['GiftsPurchased' satisfies GiftsPurchased['type']], streams: [transactionStream('')] };

/**
 * The id of a filter that the log does not know: an empty answer for a mistyped id would look like a fact.
 * @throws UnavailableError
 */
export async function unknownPurchaseFilter(
  events: Pick<EventStore, 'read'>,
  { buyer, product }: PurchaseFilter,
): Promise<{ readonly name: 'buyer' | 'product'; readonly words: string } | undefined> {
  const streams = [
    ['buyer', buyer, accountStream('user', buyer ?? '')],
    ['product', product, catalogueStream('product', product ?? '')],
  ] as const;
  for (const [name, id, stream] of streams)
    if (id !== undefined && (await events.read(stream, { limit: 1 })).length === 0)
      return { name, words: `the log knows no ${name} ${JSON.stringify(id)}` };
  return undefined;
}

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
      next: ended || place === undefined ? null : positionText(place),
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
  const end = await events.end();
  if (end === undefined) return [];
  const folded = await foldedBy([models.transactions, models.byUser, models.reversals], deps);
  if (folded === NO_BUILD) return [listed(await unfoldedPurchases(events, filter, undefined, signal))];
  const isFresh = folded !== undefined && folded >= end;
  const source = filter.buyer === undefined ? byTime(models, filter, isFresh) : byBuyer(models, filter, isFresh);
  return isFresh ? [source] : [listed(await unfoldedPurchases(events, filter, folded, signal)), source];
}

async function chargedPurchases(events: PurchaseDeps['events'], filter: PurchaseFilter): Promise<readonly Place[]> {
  const found: Place[] = [];
  for await (const { data, at } of purchasesCharged(events, filter.charge ?? ''))
    if (matches(data, at, filter)) found.push({ at, id: data.transaction_id });
  return found;
}

async function unfoldedPurchases(
  events: PurchaseDeps['events'],
  filter: PurchaseFilter,
  folded: string | undefined,
  signal: AbortSignal | undefined,
): Promise<readonly Place[]> {
  const found: Place[] = [];
  for await (const batch of events.readAll(folded, PURCHASES, { signal })) {
    for (const { data, at } of batch.events) {
      const purchase = data as GiftsPurchased['data'];
      if (matches(purchase, at, filter)) found.push({ at, id: purchase.transaction_id });
    }
    if (found.length > MOST_UNFOLDED)
      throw new UnavailableError('purchases: the read model is too far behind the log; narrow the search');
  }
  return found;
}

function matches(
  purchase: Pick<TransactionDocument, 'buyer_id' | 'product_id' | 'sale_price' | 'reference_id'>,
  at: string,
  filter: PurchaseFilter,
): boolean {
  const { buyer_id, product_id, sale_price } = purchase;
  const { buyer = buyer_id, product = product_id, min = sale_price, max = sale_price, reference_id } = filter;
  return (
    buyer === buyer_id &&
    product === product_id &&
    (reference_id === undefined || reference_id === purchase.reference_id) &&
    min <= sale_price &&
    sale_price <= max &&
    isWithin({ at }, filter)
  );
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
function byTime({ transactions, reversals }: PurchaseDeps['models'], filter: PurchaseFilter, isFresh: boolean): Source {
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
    return scannedIn(reversals, found, filter, isFresh);
  };
}

/** Purchases of one buyer. */
function byBuyer(
  { transactions, byUser, reversals }: PurchaseDeps['models'],
  filter: PurchaseFilter,
  isFresh: boolean,
): Source {
  const { from, to, buyer = '', reference_id } = filter;
  const prefix = reference_id === undefined ? boughtBy(buyer) : orderedBy(buyer, reference_id);
  const first = prefix + (from === null ? '' : timeKey(from));
  // The sign follows all that time keys are made of.
  const end = to === null ? `${prefix}~` : prefix + timeKey(new Date(Date.parse(to) + 1).toISOString());
  return async (after, count) => {
    const next = after === undefined ? end : `${prefix}${timeKey(after.at)}/${after.id}`;
    const where = { id: { gte: first, lt: next < end ? next : end } };
    const ids = (await byUser.find({ where, sort: [['id', -1]], limit: count })).map(({ id }) => namedIn(id));
    const bodies = await transactions.getMany(ids);
    const found = ids.map((id, index) => {
      const body = bodies[index];
      if (body === undefined) throw new UnavailableError('the read model does not know all purchases yet');
      return { id, body };
    });
    return scannedIn(reversals, found, filter, isFresh);
  };
}

/** Which purchases match, as far as read models tell: a status only where they have reached the log's end. */
async function scannedIn(
  reversals: PurchaseDeps['models']['reversals'],
  found: readonly { readonly id: string; readonly body: TransactionDocument }[],
  filter: PurchaseFilter,
  isFresh: boolean,
): Promise<readonly Scanned[]> {
  const { status } = filter;
  const scanned = found.map(({ id, body }) => ({
    id,
    at: body.created_at,
    matches: matches(body, body.created_at, filter),
    body,
  }));
  if (status === undefined || !isFresh) return scanned;
  const refunded = await reversals.getMany(scanned.map(({ id }) => id));
  return scanned.map(({ body, ...one }, index) => ({
    ...one,
    matches: one.matches && transactionStatus(body, refunded[index]) === status,
  }));
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
