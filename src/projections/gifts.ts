/** One document for each gift, from its purchase on. The payment is joined when read. */
import { HIDDEN_FIELDS } from './hiddenFields.js';
import { timeKey } from './timeKey.js';
import { copyWith } from '../lib/copyWith.js';
import type { GiftEvent, GiftExtended, GiftIssued, Receiver, VoucherAssigned } from '../domain/gift/events.js';
import type { ReminderSent } from '../domain/notification.js';
import { deriveGiftIds, type GiftIds } from '../domain/giftIds.js';
import type { GiftsPurchased } from '../domain/purchase/events.js';
import { receiverOf } from '../domain/purchase/decisions.js';
import type { Happened } from '../domain/decider.js';
import { idOf } from '../domain/streamName.js';
import type { Recorded, RecordedEvent } from '../ports/eventStore.js';
import { type Projection, typesOf } from '../runtime/readmodels/index.js';

/** The latest redemption. Times are ISO 8601, UTC, milliseconds. */
export interface RedemptionDocument {
  readonly id: string;
  readonly location_id: string;
  readonly redeemed: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** Secret: `code`, `pin`. */
export interface VoucherDocument {
  readonly id: string;
  readonly code: string;
  readonly pin: string | null;
  readonly segment_id: string;
  readonly expires_at: string;
  readonly created_at: string;
  /** Time of the last extension; absent: there was none. */
  readonly updated_at?: string;
}

/** `{giftId}`. */
export interface GiftDocument {
  readonly transaction_id: string;
  readonly index: number;
  readonly message_id: string;
  readonly receiver: Receiver;
  /** When the present receiver got it (ISO 8601, UTC); absent: at the purchase. */
  readonly reassigned_at?: string;
  /** The last valid day, if extended; absent: the purchase's. */
  readonly expires_on?: string;
  readonly claimed_by?: string;
  /** Holder and time of receipt, by `heldSince`; absent: no holder yet. Holds `receiver.phone_id`, which is secret. */
  readonly held?: string;
  readonly cancelled?: true;
  /** Support gave another gift in its place while it was redeemed: it is cancelled once that is reversed. */
  readonly replaced?: true;
  /** When reminders were sent, in order: ISO 8601, UTC. */
  readonly reminded?: readonly string[];
  readonly redemption?: RedemptionDocument;
  readonly voucher?: VoucherDocument;
  /** The gift's own last event: ISO 8601, UTC, milliseconds. */
  readonly updated_at: string;
}

/**
 * Events that change no document: `GiftIssued` repeats the purchase, and no answer shows a block. The transaction shows
 * whether a gift was sent, and a date whether it is expired.
 */
type NotFolded =
  | 'GiftIssued'
  | 'GiftReleased'
  | 'GiftBlocked'
  | 'GiftUnblocked'
  | 'RedemptionVoided'
  | 'ReplacementDeclined'
  | 'GiftExpiring'
  | 'GiftExpired'
  | 'ReminderDue';
type Folded = Happened<GiftsPurchased | ReminderSent | Exclude<GiftEvent, { type: NotFolded }>>;

export const userHolds = (userId: string): string => `u${userId}/`;
export const numberHolds = (phoneId: string): string => `p${phoneId}/`;

/** `{userHolds or numberHolds}{timeKey}`: sorts the gifts of one user or number by the time of receipt. */
function heldSince({ user_id, phone_id }: Receiver, time: string): string | undefined {
  // One template literal, since a string concatenated from several is put together again by each reader.
  if (user_id !== undefined) return `u${user_id}/${time}`;
  return phone_id === undefined ? undefined : `p${phone_id}/${time}`;
}

/** Caches the last time key, so that it is computed once for the gifts of each purchase. */
function lastTimeKey(): (at: string) => string {
  let last = { at: '', key: '' };
  return (at) => {
    if (last.at !== at) last = { at, key: timeKey(at) };
    return last.key;
  };
}

/** Caches the gift ids of a purchase, so that they are derived once for each event. */
function giftIdsByEvent(): (event: Happened<GiftsPurchased>) => readonly GiftIds[] {
  const known = new WeakMap<object, readonly GiftIds[]>();
  return (event) => {
    let ids = known.get(event);
    if (ids === undefined) {
      ids = deriveGiftIds(event.data.seed, event.data.receivers.length);
      known.set(event, ids);
    }
    return ids;
  };
}

function assignedVoucher({
  data: { voucher_id: id, code, pin, segment_id, expires_at },
  at,
}: Happened<VoucherAssigned>): VoucherDocument {
  return { id, code, pin, segment_id, expires_at, created_at: at };
}

function extendedVoucher(
  voucher: VoucherDocument,
  { data: { voucher_expires_at: expires_at }, at }: Happened<GiftExtended>,
): VoucherDocument {
  return expires_at === null ? voucher : { ...voucher, expires_at, updated_at: at };
}

export function voucherIn(history: readonly RecordedEvent[]): VoucherDocument | undefined {
  let voucher: VoucherDocument | undefined;
  for (const event of history as readonly Recorded<Folded>[]) {
    if (event.type === 'VoucherAssigned') voucher = assignedVoucher(event);
    else if (event.type === 'GiftExtended' && voucher !== undefined) voucher = extendedVoucher(voucher, event);
  }
  return voucher;
}

type HeldAt = (receiver: Receiver, at: string) => string | undefined;

/** Changes `document` in place, which the caller must have made itself. */
const withHeld = (document: GiftDocument, held: string | undefined): GiftDocument =>
  held === undefined ? document : Object.assign(document, { held });

/** `at`: the time of the purchase. */
function bought(
  transaction_id: string,
  index: number,
  message_id: string,
  receiver: Receiver,
  at: string,
  held: HeldAt,
): GiftDocument {
  const since = held(receiver, at);
  // Two object literals for speed: most documents that the projector makes are made here.
  return since === undefined
    ? { transaction_id, index, message_id, receiver, updated_at: at }
    : { transaction_id, index, message_id, receiver, held: since, updated_at: at };
}

function evolveGift(
  document: GiftDocument,
  event: Exclude<Folded, { type: 'GiftsPurchased' }>,
  held: HeldAt,
): GiftDocument {
  const updated_at = event.at;
  switch (event.type) {
    case 'GiftClaimed':
      return withHeld(
        copyWith(document, { claimed_by: event.data.user_id, updated_at }),
        held({ user_id: event.data.user_id }, event.at),
      );
    case 'ReminderSent':
      return copyWith(document, { reminded: [...(document.reminded ?? []), event.at] });
    case 'GiftRedeemed': {
      const { redemption_id: id, location_id } = event.data;
      return copyWith(document, {
        redemption: { id, location_id, redeemed: true, created_at: event.at, updated_at },
        updated_at,
      });
    }
    case 'GiftUnredeemed': {
      const { redemption } = document;
      if (redemption?.id !== event.data.redemption_id)
        throw new Error(`redemption ${event.data.redemption_id} is not the latest`);
      const { replaced } = document;
      return copyWith(
        { ...document, redemption: { ...redemption, redeemed: false, updated_at }, updated_at },
        replaced === true ? { cancelled: true } : {},
      );
    }
    case 'VoucherAssigned':
      return copyWith(document, { voucher: assignedVoucher(event), updated_at });
    case 'GiftCancelled':
      return copyWith(document, { cancelled: true, updated_at });
    case 'GiftReplaced':
      return copyWith(document, {
        ...(document.redemption?.redeemed === true ? { replaced: true } : { cancelled: true }),
        updated_at,
      });
    case 'GiftReassigned': {
      const { claimed_by: _, held: __, ...rest } = document;
      const { receiver } = event.data;
      return withHeld(copyWith(rest, { receiver, reassigned_at: event.at, updated_at }), held(receiver, event.at));
    }
    case 'GiftExtended': {
      const extended: GiftDocument = copyWith(document, { expires_on: event.data.expires_on, updated_at });
      return document.voucher === undefined
        ? extended
        : { ...extended, voucher: extendedVoucher(document.voucher, event) };
    }
    default:
      throw new Error(`${(event satisfies never as { type: string }).type} is not an event of a gift`);
  }
}

function makeGifts(): Projection<GiftDocument> {
  const idsOf = giftIdsByEvent();
  const keyOf = lastTimeKey();
  const held: HeldAt = (receiver, at) => heldSince(receiver, keyOf(at));
  return {
    name: 'gifts',
    version: 1,
    hidden: HIDDEN_FIELDS,
    indexes: [{ fields: ['held'] }],
    types: typesOf<Folded['type']>({
      GiftsPurchased: true,
      GiftClaimed: true,
      GiftRedeemed: true,
      GiftUnredeemed: true,
      VoucherAssigned: true,
      GiftCancelled: true,
      GiftReassigned: true,
      GiftReplaced: true,
      GiftExtended: true,
      ReminderSent: true,
    }),
    creates: ['GiftsPurchased'],
    documentIds(event: RecordedEvent): readonly string[] {
      const folded = event as Recorded<Folded>;
      return folded.type === 'GiftsPurchased' ? idsOf(folded).map((ids) => ids.gift_id) : [idOf(event.stream)];
    },
    evolve(document: GiftDocument | undefined, event: RecordedEvent, _id: string, index: number): GiftDocument {
      const folded = event as Recorded<Folded>;
      if (folded.type !== 'GiftsPurchased') {
        if (document === undefined) throw new Error(`${folded.type} of a gift that was never bought`);
        return evolveGift(document, folded, held);
      }
      const ids = idsOf(folded)[index];
      if (ids === undefined) throw new Error(`the purchase has no gift ${index}`);
      const { message_id } = ids;
      const { transaction_id } = folded.data;
      return bought(transaction_id, index, message_id, receiverOf(folded.data.receivers[index]), folded.at, held);
    },
  };
}

export const giftsProjection = makeGifts();

/** An issued gift before its own events, as its purchase made it. */
export function asBought({
  transaction_id,
  index,
  message_id,
  receiver,
  purchased_at,
}: GiftIssued['data']): GiftDocument {
  return bought(transaction_id, index, message_id, receiver, purchased_at, (one, at) => heldSince(one, timeKey(at)));
}
