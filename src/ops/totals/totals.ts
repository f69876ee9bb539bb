/** Totals by merchant and day, to the penny: a fold of the log. */
import { byBytes } from '../../lib/byBytes.js';
import type { GiftIssued, GiftUnredeemed } from '../../domain/gift/events.js';
import type { DisputeClosed, DisputeOpened, RefundedAtProvider } from '../../domain/purchase/disputes.js';
import type { GiftsPurchased } from '../../domain/purchase/events.js';
import type { GiftsRefunded, RefundFailed } from '../../domain/purchase/refund.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { catalogueEntries, catalogueNames } from '../redemptions/catalogueNames.js';
import { BYTE_ORDER_MARK, type CsvOptions, csvLine } from '../exports/csv.js';
import { type LogRange, readRange } from '../ranges/range.js';
import { redeemedFacts } from '../redemptions/redeemedFacts.js';
import type { TimeZone } from '../ranges/times.js';

/**
 * Counts of gifts (`charged_back`: of disputes), and values in pence. Reversals of an earlier day are negative.
 * `unredeemed` includes `unredeemed_by_support`; `issued` does not include `replaced`, gifts issued at no charge in
 * place of others.
 */
export interface Sums {
  issued: number;
  issued_value: number;
  replaced: number;
  replaced_value: number;
  redeemed: number;
  redeemed_value: number;
  unredeemed: number;
  unredeemed_value: number;
  unredeemed_by_support: number;
  unredeemed_by_support_value: number;
  refunded: number;
  refunded_value: number;
  charged_back: number;
  charged_back_value: number;
}

export type SumName =
  'issued' | 'replaced' | 'redeemed' | 'unredeemed' | 'unredeemed_by_support' | 'refunded' | 'charged_back';

/**
 * Issues, refunds and chargebacks count for the merchant that the brand had then ('' for an unknown brand), redemptions
 * and reversals for the location's.
 */
export interface TotalRow extends Readonly<Sums> {
  /** Day in the time zone, `YYYY-MM-DD`. */
  readonly day: string;
  readonly merchant_id: string;
}

interface Totals {
  add(at: string, merchantId: string, name: SumName, count: number, value: number): void;
  /** Rows by day, then by merchant. */
  rows(): TotalRow[];
}

export const noSums = (): Sums => ({
  issued: 0,
  issued_value: 0,
  replaced: 0,
  replaced_value: 0,
  redeemed: 0,
  redeemed_value: 0,
  unredeemed: 0,
  unredeemed_value: 0,
  unredeemed_by_support: 0,
  unredeemed_by_support_value: 0,
  refunded: 0,
  refunded_value: 0,
  charged_back: 0,
  charged_back_value: 0,
});

export function emptyTotals(zone: TimeZone): Totals {
  const days = new Map<string, Map<string, Sums>>();
  return {
    add(at, merchantId, name, count, value) {
      const day = zone.dayOf(at);
      const merchants = days.get(day) ?? new Map<string, Sums>();
      days.set(day, merchants);
      const sums = merchants.get(merchantId) ?? noSums();
      merchants.set(merchantId, sums);
      sums[name] += count;
      sums[`${name}_value`] += value;
    },
    rows: () =>
      [...days]
        .flatMap(([day, merchants]) => [...merchants].map(([merchant_id, sums]) => ({ day, merchant_id, ...sums })))
        .sort((one, other) => byBytes(one.day, other.day) || byBytes(one.merchant_id, other.merchant_id)),
  };
}

export type MerchantOf = (brandId: string, position: Position) => Promise<string>;

export function brandMerchants(events: EventStore): MerchantOf {
  const entryAt = catalogueEntries(events);
  return async (brandId, position) => (await entryAt('brand', brandId, position))?.merchant_id ?? '';
}

/** Types of the events that `wentBack` takes. */
export const BACK_TYPES: readonly string[] = [
  'GiftsRefunded',
  'RefundFailed',
  'RefundedAtProvider',
  'DisputeClosed',
  'PaymentDeclined',
];

/** Types whose sums follow from earlier events of the purchase. */
const FROM_EARLIER: ReadonlySet<string> = new Set(['DisputeClosed', 'PaymentDeclined']);

const TYPES = ['GiftIssued', 'GiftRedeemed', 'GiftUnredeemed', ...BACK_TYPES];

/** Called with the number of events read; `position` says how far the log was searched. */
type TotalsProgress = (events: number, position: Position) => void;

/** Totals of a range. Reads the log once. @throws UnavailableError; the signal's reason */
export async function foldTotals(
  events: EventStore,
  range: LogRange,
  zone: TimeZone,
  options: { readonly signal?: AbortSignal; readonly onProgress?: TotalsProgress } = {},
): Promise<TotalRow[]> {
  const totals = emptyTotals(zone);
  const facts = redeemedFacts(events);
  const merchantOf = brandMerchants(events);
  let count = 0;
  for await (const batch of readRange(events, range, { types: TYPES }, options.signal)) {
    const redemptions = batch.events.filter(({ type }) => type === 'GiftRedeemed' || type === 'GiftUnredeemed');
    const redeemed = await facts.of(redemptions);
    for (const [index, event] of redemptions.entries()) {
      const fact = redeemed[index];
      if (fact === undefined) continue;
      for (const name of redemptionSums(event)) totals.add(event.at, fact.location_merchant_id, name, 1, fact.value);
    }
    for (const event of batch.events) {
      if (event.type === 'GiftIssued') {
        const { brand_id, value } = event.data as GiftIssued['data'];
        totals.add(event.at, await merchantOf(brand_id, event.position), issueSum(event), 1, value);
      } else if (BACK_TYPES.includes(event.type)) {
        const own = await events.read(event.stream, FROM_EARLIER.has(event.type) ? {} : { limit: 1 });
        const brandId = (own[0]?.data as Partial<GiftsPurchased['data']> | undefined)?.brand_id ?? '';
        const { name, count: number, value } = wentBack(event, own);
        if (event.type === 'PaymentDeclined' && value === 0) continue;
        totals.add(event.at, await merchantOf(brandId, event.position), name, number, value);
      }
    }
    count += batch.events.length;
    options.onProgress?.(count, batch.position);
  }
  // A stopped reading ends without an error.
  options.signal?.throwIfAborted();
  return totals.rows();
}

export const issueSum = ({ data }: RecordedEvent): SumName =>
  (data as GiftIssued['data']).replacement === true ? 'replaced' : 'issued';

/** The sums for which a redemption or its reversal counts. */
export function redemptionSums({ type, data }: RecordedEvent): readonly SumName[] {
  if (type === 'GiftRedeemed') return ['redeemed'];
  const { by_support } = data as GiftUnredeemed['data'];
  return by_support === true ? ['unredeemed', 'unredeemed_by_support'] : ['unredeemed'];
}

/**
 * The money that went back to the buyer by one of `BACK_TYPES`. A refund without gifts (charged late, or twice) does
 * not count. For a refund at the provider the number of gifts is unknown. A refund that failed, or a dispute won on
 * appeal, counts against the earlier event. So does a decline against refunds at the provider of money that the
 * purchase never took, as after a charge of another amount. `own`: the purchase's events, at least those before a
 * dispute's end or a decline.
 */
export function wentBack(
  event: RecordedEvent,
  own: readonly RecordedEvent[],
): { readonly name: SumName; readonly count: number; readonly value: number } {
  const { type, data } = event;
  if (type === 'DisputeClosed') return { name: 'charged_back', ...chargedBack(event, own) };
  if (type === 'PaymentDeclined') return { name: 'refunded', count: 0, value: 0 - refundedOutside(event, own) };
  if (type === 'RefundedAtProvider')
    return { name: 'refunded', count: 0, value: (data as RefundedAtProvider['data']).amount };
  const { gift_ids, amount } = data as (GiftsRefunded | RefundFailed)['data'];
  if (gift_ids.length === 0) return { name: 'refunded', count: 0, value: 0 };
  return type === 'RefundFailed'
    ? { name: 'refunded', count: -gift_ids.length, value: -amount }
    : { name: 'refunded', count: gift_ids.length, value: amount };
}

function refundedOutside({ position }: RecordedEvent, own: readonly RecordedEvent[]): number {
  const last = own.findLast((one) => one.type === 'RefundedAtProvider' && one.position < position);
  return (last?.data as RefundedAtProvider['data'] | undefined)?.total ?? 0;
}

function chargedBack(
  { data, position }: RecordedEvent,
  own: readonly RecordedEvent[],
): { readonly count: number; readonly value: number } {
  const { dispute_id, outcome } = data as DisputeClosed['data'];
  const before = own.filter(
    (one) => one.position < position && (one.data as Partial<DisputeClosed['data']>).dispute_id === dispute_id,
  );
  const { amount = 0 } = (before.find(({ type }) => type === 'DisputeOpened')?.data ?? {}) as Partial<
    DisputeOpened['data']
  >;
  const lost = before.some(
    ({ type, data: earlier }) => type === 'DisputeClosed' && (earlier as DisputeClosed['data']).outcome === 'lost',
  );
  if (outcome === 'lost') return { count: 1, value: amount };
  return lost ? { count: -1, value: -amount } : { count: 0, value: 0 };
}

export function sumOf(rows: readonly TotalRow[]): Sums {
  const sums = noSums();
  for (const row of rows) for (const name of Object.keys(sums) as (keyof Sums)[]) sums[name] += row[name];
  return sums;
}

const SUM_NAMES = Object.keys(noSums()) as (keyof Sums)[];

/** Lines of CSV with the totals. Merchants have their names at the range's end. */
export async function totalsCsv(
  events: Pick<EventStore, 'read'>,
  rows: readonly TotalRow[],
  { through }: Pick<LogRange, 'through'>,
  { excel }: Pick<CsvOptions, 'excel'>,
): Promise<string[]> {
  const nameAt = catalogueNames(events);
  const mark = excel === true ? BYTE_ORDER_MARK : '';
  const lines = [
    mark +
      csvLine([
        'day',
        'merchant_id',
        ...SUM_NAMES.map((name) => (name.endsWith('_value') ? `${name}_pence` : name)),
        'merchant_name',
      ]),
  ];
  for (const { day, merchant_id, ...sums } of rows) {
    lines.push(
      csvLine([
        day,
        merchant_id,
        ...SUM_NAMES.map((name) => sums[name]),
        merchant_id === '' ? '' : await nameAt('merchant', merchant_id, through ?? ''),
      ]),
    );
  }
  return lines;
}
