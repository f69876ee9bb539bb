/** Redemptions and their reversals, read from the log in constant memory. */
import { accountStream } from '../../domain/account.js';
import { catalogueStream } from '../../domain/catalogue.js';
import { type GiftRedeemed, type GiftUnredeemed, giftStream } from '../../domain/gift/events.js';
import { idOf } from '../../domain/streamName.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import { type NameAt, catalogueNames } from './catalogueNames.js';
import { type Cell, type CsvOptions, csvWriter } from '../exports/csv.js';
import { type EventView, eventView } from '../history/eventView.js';
import { type LogRange, readRange } from '../ranges/range.js';
import { type UnknownFilter, unknownFilter } from '../ranges/unknownFilter.js';
import { redeemedFacts } from './redeemedFacts.js';

/**
 * Filters, all of which must match. `columns`: columns of the CSV that name the filter as well. `chosen`: its words in
 * help and API.
 */
export const REDEMPTION_FILTERS = {
  merchant: {
    columns: ['merchant_id', 'location_merchant_id'],
    chosen: "at this merchant's locations",
    streamOf: (id: string) => catalogueStream('merchant', id),
  },
  location: {
    columns: ['location_id'],
    chosen: 'at this location',
    streamOf: (id: string) => catalogueStream('store', id),
  },
  user: {
    columns: [],
    chosen: 'what this user, or `cli:{system user}@{host}`, did',
    streamOf: (id: string) => accountStream('user', id),
  },
  gift: {
    columns: ['gift_id'],
    chosen: 'of this gift, by its id or shortcode',
    streamOf: (id: string) => giftStream(id),
  },
  brand: {
    columns: ['brand_id'],
    chosen: 'of gifts of this brand',
    streamOf: (id: string) => catalogueStream('brand', id),
  },
  product: {
    columns: ['product_id'],
    chosen: 'of gifts of this product',
    streamOf: (id: string) => catalogueStream('product', id),
  },
} as const satisfies Record<
  string,
  { readonly columns: readonly string[]; readonly chosen: string; streamOf(id: string): string }
>;

export type RedemptionFilterName = keyof typeof REDEMPTION_FILTERS;

export const REDEMPTION_FILTER_NAMES = Object.keys(REDEMPTION_FILTERS) as RedemptionFilterName[];

export type RedemptionFilter = Readonly<Partial<Record<RedemptionFilterName, string | undefined>>>;

/** Whether a user is one of the command line's, who have no account (docs/support.md#acting-person). */
const isCommandLine = (user: string): boolean => user.startsWith('cli:');

/** @throws UnavailableError */
export async function unknownTo(events: EventStore, filter: RedemptionFilter): Promise<UnknownFilter | undefined> {
  return unknownFilter(
    events,
    REDEMPTION_FILTER_NAMES.flatMap((name) => {
      const id = filter[name];
      const isKnown = id === undefined || (name === 'user' && isCommandLine(id));
      return isKnown ? [] : [{ name, id, stream: REDEMPTION_FILTERS[name].streamOf(id) }];
    }),
  );
}

/** The gift or person that a list is about, for the access record. */
export const redemptionTopic = ({ gift, user }: RedemptionFilter): Readonly<Record<string, string>> => ({
  ...(gift === undefined ? {} : { gift }),
  ...(user === undefined || isCommandLine(user) ? {} : { person: user }),
});

/** A redemption or reversal. */
export interface RedemptionRecord extends EventView {
  readonly gift_id: string;
  readonly redemption: GiftRedeemed['data'];
}

interface RedemptionBatch {
  readonly records: readonly RedemptionRecord[];
  readonly position: Position;
}

const TYPES = ['GiftRedeemed', 'GiftUnredeemed'] as const;

/** Redemptions and reversals of a range, in log order. @throws UnavailableError */
export async function* readRedemptions(
  events: EventStore,
  range: LogRange,
  filter: RedemptionFilter,
  signal?: AbortSignal,
): AsyncGenerator<RedemptionBatch> {
  const facts = redeemedFacts(events);
  for await (const batch of readRange(events, range, { types: TYPES, streams: [giftStream('')] }, signal)) {
    const redeemed = await facts.of(batch.events);
    const records: RedemptionRecord[] = [];
    for (const [index, event] of batch.events.entries()) {
      const redemption = redeemed[index];
      if (redemption !== undefined && matches(event, redemption, filter))
        records.push({ ...eventView(event, { personal: false }), gift_id: idOf(event.stream), redemption });
    }
    yield { records, position: batch.position };
  }
}

function matches(
  { stream, metadata }: RecordedEvent,
  redemption: GiftRedeemed['data'],
  filter: RedemptionFilter,
): boolean {
  const facts: Readonly<Record<RedemptionFilterName, string | undefined>> = {
    merchant: redemption.location_merchant_id,
    location: redemption.location_id,
    user: metadata.by.user,
    gift: idOf(stream),
    brand: redemption.brand_id,
    product: redemption.product_id,
  };
  return REDEMPTION_FILTER_NAMES.every((name) => filter[name] === undefined || filter[name] === facts[name]);
}

/** Columns for programs, then columns for people. */
const REDEMPTION_COLUMNS = [
  'position',
  'at',
  'type',
  'gift_id',
  'redemption_id',
  'location_id',
  'location_merchant_id',
  'merchant_id',
  'brand_id',
  'product_id',
  'value_pence',
  'user',
  'client',
  'roles',
  'request_id',
  'command_id',
  'causation_id',
  'correlation_id',
  'id',
  'revision',
  'by_support',
  'reason',
  'location_name',
  'location_merchant_name',
  'brand_name',
  'product_name',
] as const;

interface RedemptionCsv {
  /** Line of the column names; ends in a line feed. */
  readonly heading: string;
  /** Lines of CSV, with the names that locations, brands and products had then. */
  lines(records: readonly RedemptionRecord[]): Promise<string>;
}

export function redemptionCsv(events: Pick<EventStore, 'read'>, options: CsvOptions): RedemptionCsv {
  const nameAt = catalogueNames(events);
  const csv = csvWriter(REDEMPTION_COLUMNS, options);
  return {
    heading: csv.heading,
    async lines(records) {
      const lines: string[] = [];
      for (const record of records) lines.push(csv.line(await redemptionRow(record, nameAt)));
      return lines.join('');
    },
  };
}

async function redemptionRow(record: RedemptionRecord, nameAt: NameAt): Promise<Cell[]> {
  const { redemption, by, position } = record;
  const [location_name, location_merchant_name, brand_name, product_name] = await Promise.all([
    nameAt('store', redemption.location_id, position),
    nameAt('merchant', redemption.location_merchant_id, position),
    nameAt('brand', redemption.brand_id, position),
    nameAt('product', redemption.product_id, position),
  ]);
  const { by_support, reason } = record.data as Partial<GiftUnredeemed['data']>;
  const cells = {
    ...redemption,
    ...record,
    value_pence: redemption.value,
    user: by.user,
    client: by.client,
    roles: by.roles?.join(' '),
    by_support,
    reason,
    location_name,
    location_merchant_name,
    brand_name,
    product_name,
  };
  return REDEMPTION_COLUMNS.map((column) => cells[column]);
}
