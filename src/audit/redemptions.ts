/** Who redeemed what, where and when: redemptions and their reversals as they stand in the log, read through once, in constant memory. */
import { accountStream } from '../domain/account.js';
import { catalogueStream } from '../domain/catalogue.js';
import { type GiftRedeemed, giftStream } from '../domain/gift.js';
import { idOf } from '../domain/streamName.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import type { Cell } from './csv.js';
import { type EventView, eventView } from './eventView.js';
import { type LogRange, readRange } from './range.js';
import { redeemedFacts } from './redeemedFacts.js';

/** Which are wanted; all conditions given must hold. */
export interface RedemptionFilter {
  /** The merchant at whose location it was. */
  readonly merchant?: string | undefined;
  readonly location?: string | undefined;
  /** Who redeemed, or reversed. */
  readonly user?: string | undefined;
}

/**
 * The first of a filter's ids that the log has never heard of, and what to say of it: a mistyped one would give an empty answer, which looks like a fact.
 * `undefined` when it knows all. @throws UnavailableError
 */
export async function unknownTo(events: EventStore, { merchant, location, user }: RedemptionFilter): Promise<{ readonly name: keyof RedemptionFilter; readonly words: string } | undefined> {
  const named = [
    ['merchant', merchant, (id: string) => catalogueStream('merchant', id)],
    ['location', location, (id: string) => catalogueStream('store', id)],
    ['user', user, (id: string) => accountStream('user', id)],
  ] as const;
  for (const [name, id, streamOf] of named) {
    if (id !== undefined && (await events.read(streamOf(id), { limit: 1 })).length === 0) return { name, words: `the log knows no ${name} ${JSON.stringify(id)}` };
  }
  return undefined;
}

/** One redemption or reversal: its event, with the gift and what was redeemed (for a reversal: what is reversed). */
export interface RedemptionRecord extends EventView {
  readonly gift_id: string;
  readonly redemption: GiftRedeemed['data'];
}

/** Some records, and how far the log has been looked at. */
export interface RedemptionBatch {
  readonly records: readonly RedemptionRecord[];
  readonly position: Position;
}

const TYPES = ['GiftRedeemed', 'GiftUnredeemed'] as const;

/** The redemptions and reversals of a range, in log order, in batches. @throws UnavailableError */
export async function* readRedemptions(events: EventStore, range: LogRange, filter: RedemptionFilter, signal?: AbortSignal): AsyncGenerator<RedemptionBatch> {
  const facts = redeemedFacts(events);
  for await (const batch of readRange(events, range, { types: TYPES, streams: [giftStream('')] }, signal)) {
    const redeemed = await facts.of(batch.events);
    const records: RedemptionRecord[] = [];
    for (const [index, event] of batch.events.entries()) {
      const redemption = redeemed[index];
      if (redemption !== undefined && wanted(event, redemption, filter)) records.push({ ...eventView(event, { personal: false }), gift_id: idOf(event.stream), redemption });
    }
    yield { records, position: batch.position };
  }
}

function wanted({ metadata }: RecordedEvent, redemption: GiftRedeemed['data'], { merchant, location, user }: RedemptionFilter): boolean {
  return (merchant === undefined || redemption.location_merchant_id === merchant)
    && (location === undefined || redemption.location_id === location)
    && (user === undefined || metadata.by.user === user);
}

/** The heading of a record's row in CSV. */
export const REDEMPTION_COLUMNS: readonly string[] = [
  'position', 'at', 'type', 'gift_id', 'redemption_id', 'location_id', 'location_merchant_id', 'merchant_id', 'brand_id', 'product_id', 'value', 'user', 'client', 'roles',
  'request_id', 'command_id', 'causation_id', 'correlation_id', 'id', 'revision',
];

/** A record's row in CSV; `value` is pence. */
export function redemptionRow(record: RedemptionRecord): Cell[] {
  const { position, at, type, gift_id, redemption, by, request_id, command_id, causation_id, correlation_id, id, revision } = record;
  const { redemption_id, location_id, location_merchant_id, merchant_id, brand_id, product_id, value } = redemption;
  return [
    position, at, type, gift_id, redemption_id, location_id, location_merchant_id, merchant_id, brand_id, product_id, value, by.user, by.client, by.roles?.join(' '),
    request_id, command_id, causation_id, correlation_id, id, revision,
  ];
}
