/**
 * The event feed: one document for each event that callers may see, in log order, with the parties that may see it.
 * Further documents hold the parties of transactions and gifts, for events that do not name them.
 */
import { HIDDEN_FIELDS } from '../hiddenFields.js';
import { type PhoneGivenUp, type PhoneTaken, reservationAggregate } from '../../domain/account.js';
import { transactionStream } from '../../domain/purchase/events.js';
import type { Happened } from '../../domain/decider.js';
import { idOf, kindOf } from '../../domain/streamName.js';
import type { Position, RecordedEvent } from '../../ports/eventStore.js';
import { type Projection, typesOf } from '../../runtime/readmodels/index.js';
import { ENTRY_TYPES, type EntryType, type FedEvent } from './entryTypes.js';
import {
  type GiftParties,
  type Holding,
  holdingAt,
  holdingBefore,
  holdingOf,
  isBlockedAt,
  type NumberHolders,
  type TransactionParties,
  type UserNumbers,
} from './parties.js';

/** Data of an entry: ids and state only, and no code, number, name or message. */
export interface EntryData {
  readonly transaction_id: string;
  /** The caller's own name for the purchase, in events of the purchase. */
  readonly reference_id?: string;
  readonly gift_id?: string;
  readonly redemption_id?: string;
  /** Support reversed the redemption; absent: a merchant's user did. */
  readonly by_support?: true;
  readonly location_id?: string;
  readonly voucher_id?: string;
  readonly refund_id?: string;
  /** The gift that replaces this one. */
  readonly replaced_by?: string;
  /** The gift that the purchase replaces at no charge. */
  readonly replaces?: string;
  /** The last valid day (UTC). */
  readonly expires_on?: string;
  /** When the gifts are to be sent: ISO 8601, UTC; null: not before the buyer names a time. */
  readonly send_at?: string | null;
  /** Whether the gift is blocked after the event, since several causes may block it. */
  readonly blocked?: boolean;
}

/** `e:{position}.{0 or 1}`. Never changes. `client`, `buyer`, `holder`, `merchant`: the parties that may see it. */
export interface FeedEntry {
  /** The event's id in the log. */
  readonly event_id: string;
  readonly type: EntryType;
  /** Time of the event: ISO 8601, UTC, milliseconds. */
  readonly at: string;
  readonly data: EntryData;
  readonly client?: string;
  readonly buyer?: string;
  /** `user:{id}`, or `phone:{id}` of a number in the key store. */
  readonly holder?: string;
  /** When the gift was sent to the number that is its `holder`: ISO 8601, UTC. */
  readonly since?: string;
  /** Merchant where the gift was redeemed. */
  readonly merchant?: string;
}

export type FeedDocument = FeedEntry | TransactionParties | GiftParties | NumberHolders | UserNumbers;

const ENTRY = 'e:';

export const entryId = (position: Position): string => `${ENTRY}${position}.0`;
/** Id of an event's second entry, for the holder whom the event takes the gift from. */
const formerEntryId = (position: Position): string => `${ENTRY}${position}.1`;

/** A text that sorts after the ids of all entries up to `position`, and before all later ones. */
export const entryBound = (position: Position): string => `${ENTRY}${position}${position === '' ? '' : '/'}`;

export const positionOfEntry = (id: string): Position => id.slice(ENTRY.length, id.lastIndexOf('.'));

const transactionParties = (id: string): string => `t:${id}`;
const giftParties = (id: string): string => `g:${id}`;
export const numberHolders = (phoneId: string): string => `n:${phoneId}`;
export const userNumbers = (userId: string): string => `u:${userId}`;

type Fed = Happened<FedEvent> & RecordedEvent;
type NumberMoved = Happened<PhoneTaken | PhoneGivenUp> & RecordedEvent;

const isNumberMoved = (event: RecordedEvent): event is NumberMoved =>
  event.type === 'PhoneTaken' || event.type === 'PhoneGivenUp';

const TRANSACTION = kindOf(transactionStream('-'));

/** Types of events that change the parties of an issued gift. */
const CHANGES_PARTIES: ReadonlySet<string> = new Set<FedEvent['type']>([
  'GiftReleased',
  'GiftClaimed',
  'GiftReassigned',
  'GiftBlocked',
  'GiftUnblocked',
]);

export const feedProjection: Projection<FeedDocument> = {
  name: 'feed',
  version: 1,
  last: true,
  hidden: new Set([...HIDDEN_FIELDS, 'holder']),
  indexes: [
    { fields: ['client'], partitioned: true },
    { fields: ['merchant'], partitioned: true },
    { fields: ['buyer'], partitioned: true },
    { fields: ['holder'], partitioned: true },
  ],
  types: [...Object.keys(ENTRY_TYPES), ...typesOf<NumberMoved['type']>({ PhoneTaken: true, PhoneGivenUp: true })],
  creates: Object.keys(ENTRY_TYPES).filter((type) => !CHANGES_PARTIES.has(type)),
  isFinal: (document) => 'event_id' in document,
  documentIds(event) {
    if (isNumberMoved(event)) return [numberHolders(idOf(event.stream)), userNumbers(event.data.user_id)];
    const entry = entryId(event.position);
    const { type, stream } = event as Fed;
    if (type === 'GiftsPurchased') return [transactionParties(idOf(stream)), entry];
    if (type === 'GiftReassigned') return [giftParties(idOf(stream)), entry, formerEntryId(event.position)];
    return type === 'GiftIssued' || CHANGES_PARTIES.has(type) ? [giftParties(idOf(stream)), entry] : [entry];
  },
  contextIds(event) {
    if (isNumberMoved(event)) return [];
    const { type, stream, data } = event as Fed;
    if (type === 'GiftsPurchased') return [];
    if (type === 'GiftIssued') return [transactionParties(data.transaction_id)];
    const id = idOf(stream);
    return [kindOf(stream) === TRANSACTION ? transactionParties(id) : giftParties(id)];
  },
  evolve(document, event, id, index, [known] = []) {
    if (isNumberMoved(event))
      return index === 0
        ? movedNumber(document as NumberHolders | undefined, event)
        : numberOf(document as UserNumbers | undefined, event);
    const fed = event as Fed;
    if (id === formerEntryId(event.position)) return formerEntryOf(fed, known as GiftParties | undefined);
    if (id.startsWith(ENTRY)) return entryOf(fed, known);
    if (fed.type === 'GiftsPurchased') return buyerOf(fed);
    if (fed.type === 'GiftIssued') return giftIssued(fed, known as TransactionParties | undefined);
    return changed(document as GiftParties | undefined, fed);
  },
};

function movedNumber(before: NumberHolders | undefined, event: NumberMoved): NumberHolders {
  return { holders: reservationAggregate.evolve(before?.holders ?? [], event) };
}

function numberOf(before: UserNumbers | undefined, { stream }: NumberMoved): UserNumbers {
  return { phone_ids: [...new Set([...(before?.phone_ids ?? []), idOf(stream)])] };
}

function buyerOf({ data, metadata }: Extract<Fed, { type: 'GiftsPurchased' }>): TransactionParties {
  const { buyer_id, reference_id, replaces } = data;
  const client = replaces === undefined ? metadata.by.client : replaces.client_id;
  const bought: TransactionParties = client === undefined ? { buyer_id } : { buyer_id, client_id: client };
  return reference_id === undefined ? bought : { ...bought, reference_id };
}

/** Builds the parties in one literal: with spread objects it took longer than all else that is done for the event. */
function giftIssued(
  { type, position, data }: Extract<Fed, { type: 'GiftIssued' }>,
  bought: TransactionParties | undefined,
): GiftParties {
  if (bought === undefined) throw new Error(`${type} of a purchase that was never made`);
  const { transaction_id, purchased_at, receiver, scheduled } = data;
  const parties: { -readonly [K in keyof GiftParties]: GiftParties[K] } = {
    buyer_id: bought.buyer_id,
    transaction_id,
    holdings: [holdingOf(position, purchased_at, receiver)],
    blocks: [],
  };
  if (bought.client_id !== undefined) parties.client_id = bought.client_id;
  if (scheduled !== undefined) parties.scheduled = {};
  return parties;
}

function changed(before: GiftParties | undefined, event: Fed): GiftParties {
  if (before === undefined) throw new Error(`${event.type} of a gift that was never issued`);
  const { position: from, at } = event;
  switch (event.type) {
    case 'GiftReleased':
      return { ...before, scheduled: { released: from } };
    case 'GiftClaimed':
      return { ...before, holdings: [...before.holdings, holdingOf(from, at, event.data)] };
    case 'GiftReassigned':
      return { ...before, holdings: [...before.holdings, holdingOf(from, at, event.data.receiver)] };
    case 'GiftBlocked':
    case 'GiftUnblocked': {
      const block = { from, cause: event.data.cause, blocked: event.type === 'GiftBlocked' };
      return { ...before, blocks: [...before.blocks, block] };
    }
    default:
      throw new Error(`${event.type} changes nothing that is kept of a gift`);
  }
}

/** Builds the entry of an event. @param known the parties before the event */
function entryOf(event: Fed, known: FeedDocument | undefined): FeedEntry {
  const { type, stream, position } = event;
  if (event.type === 'GiftsPurchased')
    return entryWith(
      event,
      { ...purchaseOf(idOf(stream), event.data), ...sendingOf(event), ...replacesOf(event) },
      buyerOf(event),
    );
  if (known === undefined) throw new Error(`${type} in ${stream}, which no purchase led to`);
  if (kindOf(stream) === TRANSACTION) {
    const bought = known as TransactionParties;
    const data = { ...purchaseOf(idOf(stream), bought), ...refundOf(event), ...sendingOf(event) };
    return entryWith(event, data, bought);
  }
  const gift =
    event.type === 'GiftIssued'
      ? giftIssued(event, known as TransactionParties)
      : CHANGES_PARTIES.has(type)
        ? changed(known as GiftParties, event)
        : (known as GiftParties);
  return entryWith(event, dataOf(event, gift), gift, holdingAt(gift, position));
}

/** Builds an entry without spread objects, which took most of the time of a redemption's entry. */
function entryWith(
  event: Fed,
  data: EntryData,
  { buyer_id, client_id }: TransactionParties,
  held?: Holding,
): FeedEntry {
  const { id: event_id, type, at } = event;
  const entry: { -readonly [K in keyof FeedEntry]: FeedEntry[K] } = {
    event_id,
    type: ENTRY_TYPES[type],
    at,
    data,
    buyer: buyer_id,
  };
  if (client_id !== undefined) entry.client = client_id;
  if (held?.holder !== undefined) entry.holder = held.holder;
  if (held?.since !== undefined) entry.since = held.since;
  const merchant = merchantOf(event);
  if (merchant !== undefined) entry.merchant = merchant;
  return entry;
}

/** The entry for the former holder. It has no reader where only the buyer had the gift. */
function formerEntryOf(event: Fed, known: GiftParties | undefined): FeedEntry {
  const { client: _, buyer: __, holder: ___, since: ____, ...entry } = entryOf(event, known);
  const before = known === undefined ? undefined : holdingBefore(known, event.position);
  if (before?.holder === undefined) return entry;
  const { holder, since } = before;
  return since === undefined ? { ...entry, holder } : { ...entry, holder, since };
}

const purchaseOf = (
  transaction_id: string,
  { reference_id }: { readonly reference_id?: string },
): Pick<EntryData, 'transaction_id' | 'reference_id'> =>
  reference_id === undefined ? { transaction_id } : { transaction_id, reference_id };

function refundOf(event: Fed): Pick<EntryData, 'refund_id'> {
  return event.type === 'GiftsRefunded' || event.type === 'RefundFailed' ? { refund_id: event.data.refund_id } : {};
}

const replacesOf = ({ data: { replaces } }: Extract<Fed, { type: 'GiftsPurchased' }>): Pick<EntryData, 'replaces'> =>
  replaces === undefined ? {} : { replaces: replaces.gift_id };

function sendingOf(event: Fed): Pick<EntryData, 'send_at'> {
  if (event.type === 'SendRescheduled') return { send_at: event.data.send_at };
  return event.type === 'GiftsPurchased' && event.data.send_at !== undefined ? { send_at: event.data.send_at } : {};
}

/** Data of a gift's entry, with the gift's state after the event. */
function dataOf(event: Fed, gift: GiftParties): EntryData {
  const { transaction_id } = gift;
  const gift_id = idOf(event.stream);
  switch (event.type) {
    case 'GiftRedeemed': {
      const { redemption_id, location_id } = event.data;
      return { transaction_id, gift_id, redemption_id, location_id };
    }
    case 'GiftUnredeemed': {
      const { redemption_id, location_id, by_support } = event.data;
      const data = { transaction_id, gift_id, redemption_id, location_id };
      return by_support === true ? { ...data, by_support } : data;
    }
    case 'VoucherAssigned':
      return { transaction_id, gift_id, voucher_id: event.data.voucher_id };
    case 'GiftReplaced':
      return { transaction_id, gift_id, replaced_by: event.data.replaced_by.gift_id };
    case 'GiftExtended':
    case 'GiftExpiring':
    case 'GiftExpired':
      return { transaction_id, gift_id, expires_on: event.data.expires_on };
    case 'GiftBlocked':
    case 'GiftUnblocked':
      return { transaction_id, gift_id, blocked: isBlockedAt(gift, event.position) };
    default:
      return { transaction_id, gift_id };
  }
}

function merchantOf(event: Fed): string | undefined {
  return event.type === 'GiftRedeemed' || event.type === 'GiftUnredeemed'
    ? (event.data.location_merchant_id ?? event.data.merchant_id ?? undefined)
    : undefined;
}
