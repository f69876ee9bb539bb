/**
 * Checks totals, which come from the log in its order, against sums from single streams: those of every transaction in
 * the read model (or the log), and of every gift derived from its seed.
 */
import { pages } from '../../lib/async/pages.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { type GiftIssued, type GiftRedeemed, giftStream } from '../../domain/gift/events.js';
import { deriveGiftIds } from '../../domain/giftIds.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import { slices } from '../../lib/async/slices.js';
import { upTo } from '../history/giftHistory.js';
import { type LogRange, isInRange, readRange } from '../ranges/range.js';
import type { TimeZone } from '../ranges/times.js';
import {
  type MerchantOf,
  type SumName,
  type Sums,
  type TotalRow,
  brandMerchants,
  emptyTotals,
  issueSum,
  BACK_TYPES,
  noSums,
  redemptionSums,
  wentBack,
} from './totals.js';

/** Milliseconds to wait for the read model; less where the log is an alternative. */
const REACH_MS = { only: 5_000, first: 1_000 };
const PURCHASES = { types: ['GiftsPurchased'], streams: [transactionStream('')] } as const;
const PAGE = 200;
const PARALLEL_READS = 32;
/** Most entries of `faults` and `differences`; `faults_found` and `differences_found` count all. */
const MAX_LISTED = 100;

interface TotalDifference {
  readonly day: string;
  readonly merchant_id: string;
  readonly field: keyof Sums;
  /** Sum from the log, in pence, or a count. */
  readonly log: number;
  readonly streams: number;
}

interface MoneyFault {
  readonly transaction_id: string;
  readonly gift_id?: string;
  readonly fault: string;
}

export interface TotalsCheck {
  readonly agree: boolean;
  readonly transactions: number;
  readonly gifts: number;
  /**
   * Number of paid gifts that are not issued. That is no fault: the process manager works on them, or has parked them.
   */
  readonly not_issued_yet: number;
  readonly differences: readonly TotalDifference[];
  readonly faults: readonly MoneyFault[];
  readonly differences_found: number;
  readonly faults_found: number;
}

interface CheckDeps {
  readonly events: EventStore;
  readonly transactions: ReadModel<TransactionDocument>;
}

interface CheckOptions {
  readonly signal?: AbortSignal;
  readonly onProgress?: (transactions: number) => void;
  /**
   * Called where the read model is behind the range's end: transactions then come from the log, which takes longer.
   * Absent: UnavailableError instead.
   */
  readonly onBehind?: () => void;
}

/**
 * Checks the totals of a range. `rows` is what `foldTotals` answers for this range.
 * @throws UnavailableError (see `onBehind`); the signal's reason
 */
export async function checkTotals(
  deps: CheckDeps,
  rows: readonly TotalRow[],
  range: LogRange,
  zone: TimeZone,
  options: CheckOptions = {},
): Promise<TotalsCheck> {
  const { events } = deps;
  const { through } = range;
  const totals = emptyTotals(zone);
  const merchantOf = brandMerchants(events);
  const faults: MoneyFault[] = [];
  let faultsFound = 0;
  const counts = { transactions: 0, gifts: 0, not_issued_yet: 0 };
  const sums = summing(range, totals.add);
  const fault = (one: MoneyFault): void => {
    faultsFound += 1;
    if (faults.length < MAX_LISTED) faults.push(one);
  };
  const time = slices();

  async function checkTransaction(id: string): Promise<void> {
    const own = upTo(await events.read(transactionStream(id)), through ?? undefined);
    const [bought] = own;
    if (bought?.type !== 'GiftsPurchased') return;
    counts.transactions += 1;
    const purchase = bought.data as GiftsPurchased['data'];
    const charged = await sumPurchase(own, purchase, sums, merchantOf, (text) =>
      fault({ transaction_id: id, fault: text }),
    );
    const ids = deriveGiftIds(purchase.seed, purchase.receivers.length).map((one) => one.gift_id);
    await inParallel(ids, PARALLEL_READS, async (giftId) => {
      const life = upTo(await events.read(giftStream(giftId)), through ?? undefined);
      counts.gifts += 1;
      if (life.length === 0) counts.not_issued_yet += charged ? 1 : 0;
      else
        await sumGift(life, { purchase, charged }, sums, merchantOf, (text) =>
          fault({ transaction_id: id, gift_id: giftId, fault: text }),
        );
      if (time.due()) await time.rest();
    });
  }

  for await (const id of await transactionsOf(deps, range, options)) {
    options.signal?.throwIfAborted();
    await checkTransaction(id);
    options.onProgress?.(counts.transactions);
  }
  const differences = differencesOf(rows, totals.rows());
  return {
    agree: differences.length === 0 && faultsFound === 0,
    ...counts,
    differences: differences.slice(0, MAX_LISTED),
    faults,
    differences_found: differences.length,
    faults_found: faultsFound,
  };
}

async function transactionsOf(
  { events, transactions }: CheckDeps,
  { through }: LogRange,
  { onBehind }: CheckOptions,
): Promise<AsyncIterable<string>> {
  if (through === null) return inLog(events, through);
  if (await transactions.reached(through, onBehind === undefined ? REACH_MS.only : REACH_MS.first))
    return inReadModel(transactions);
  if (onBehind === undefined)
    throw new UnavailableError(
      `the read model of transactions has not come to position ${through}: start the service, or wait until it has caught up`,
    );
  onBehind();
  return inLog(events, through);
}

async function* inReadModel(transactions: CheckDeps['transactions']): AsyncGenerator<string> {
  const read = async (last: { readonly id: string } | undefined): Promise<readonly { readonly id: string }[]> =>
    transactions.find({ where: { id: { gt: last?.id ?? '' } }, sort: [['id', 1]], limit: PAGE });
  for await (const page of pages(PAGE, read)) for (const { id } of page) yield id;
}

async function* inLog(events: EventStore, through: Position | null): AsyncGenerator<string> {
  for await (const batch of readRange(events, { after: null, through, from: null, to: null }, PURCHASES)) {
    for (const { data } of batch.events) yield (data as GiftsPurchased['data']).transaction_id;
  }
}

type Add = (event: RecordedEvent, merchantId: string, name: SumName, count: number, value: number) => void;

function summing(
  range: LogRange,
  add: (at: string, merchantId: string, name: SumName, count: number, value: number) => void,
): Add {
  return (event, merchantId, name, count, value) => {
    if (isInRange(event, range)) add(event.at, merchantId, name, count, value);
  };
}

/** @returns whether the purchase is charged */
async function sumPurchase(
  own: readonly RecordedEvent[],
  purchase: GiftsPurchased['data'],
  add: Add,
  merchantOf: MerchantOf,
  fault: (text: string) => void,
): Promise<boolean> {
  const price = purchase.replaces === undefined ? purchase.sale_price * purchase.receivers.length : 0;
  if (purchase.total !== price) fault(`bought for ${purchase.total}, but its gifts cost ${price}`);
  let charged: number | undefined;
  let refunded = 0;
  for (const event of own) {
    if (event.type === 'PaymentCharged') {
      const { amount } = event.data as { readonly amount: number };
      if (charged === undefined && amount !== price) fault(`charged ${amount}, but its gifts cost ${price}`);
      if (charged === undefined) charged = amount;
    } else if (BACK_TYPES.includes(event.type)) {
      const { name, count, value } = wentBack(event, own);
      if (name === 'refunded') refunded += value;
      add(event, await merchantOf(purchase.brand_id, event.position), name, count, value);
    }
  }
  if (refunded > (charged ?? 0)) fault(`refunded ${refunded}, but charged ${charged ?? 0}`);
  return charged !== undefined;
}

async function sumGift(
  life: readonly RecordedEvent[],
  { purchase, charged }: { readonly purchase: GiftsPurchased['data']; readonly charged: boolean },
  add: Add,
  merchantOf: MerchantOf,
  fault: (text: string) => void,
): Promise<void> {
  const redeemed = new Map<string, GiftRedeemed['data']>();
  let open: string | undefined;
  if (!charged) fault('issued without being paid for');
  if (life[0]?.type !== 'GiftIssued') fault('used before it was issued');
  for (const event of life) {
    if (event.type === 'GiftIssued') {
      const { value, brand_id } = event.data as GiftIssued['data'];
      if (value !== purchase.sale_price) fault(`issued for ${value}, but bought for ${purchase.sale_price}`);
      add(event, await merchantOf(brand_id, event.position), issueSum(event), 1, value);
    } else if (event.type === 'GiftRedeemed') {
      const data = event.data as GiftRedeemed['data'];
      if (open !== undefined) fault(`redeemed twice: ${open} and ${data.redemption_id}`);
      if (data.value !== purchase.sale_price)
        fault(`redeemed for ${data.value}, but bought for ${purchase.sale_price}`);
      open = data.redemption_id;
      redeemed.set(open, data);
      add(event, data.location_merchant_id, 'redeemed', 1, data.value);
    } else if (event.type === 'GiftUnredeemed') {
      const { redemption_id: id } = event.data as { readonly redemption_id: string };
      const data = redeemed.get(id);
      if (open !== id) fault(`reverses the redemption ${id}, which is not the open one`);
      open = undefined;
      if (data === undefined) continue;
      for (const name of redemptionSums(event)) add(event, data.location_merchant_id, name, 1, data.value);
    }
  }
}

function differencesOf(log: readonly TotalRow[], streams: readonly TotalRow[]): TotalDifference[] {
  const keyOf = ({ day, merchant_id }: TotalRow): string => `${day} ${merchant_id}`;
  const [left, right] = [log, streams].map((rows) => new Map(rows.map((row) => [keyOf(row), row])));
  const all = new Map([...log, ...streams].map((row) => [keyOf(row), row]));
  return [...all]
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .flatMap(([key, { day, merchant_id }]) => {
      const [inLog, inStreams] = [left?.get(key) ?? noSums(), right?.get(key) ?? noSums()];
      return (Object.keys(noSums()) as (keyof Sums)[])
        .filter((field) => inLog[field] !== inStreams[field])
        .map((field) => ({ day, merchant_id, field, log: inLog[field], streams: inStreams[field] }));
    });
}
