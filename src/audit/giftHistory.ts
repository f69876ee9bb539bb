/** Every event of a gift's life, across streams: what was bought, paid, issued, told, redeemed, vouchered, and what could not be done (decisions 11). */
import type { VoucherAssigned } from '../domain/gift.js';
import { giftStream } from '../domain/gift.js';
import { deriveGiftIds, giftIdOf } from '../domain/giftIds.js';
import type { KeyedHash } from '../domain/keyedHash.js';
import { notificationStream } from '../domain/notification.js';
import { type ParkedName, parkedStream } from '../domain/parked.js';
import { type GiftsPurchased, transactionStream } from '../domain/purchase.js';
import { voucherCodeStream } from '../domain/voucherCode.js';
import { walletStream } from '../domain/wallet.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import type { ReadModels } from '../readModels.js';

/** What histories are found with. */
export interface HistoryDeps {
  readonly events: EventStore;
  /** Asked only for what the streams' names don't tell: a gift that is not issued yet, a redemption's gift. */
  readonly models: Pick<ReadModels, 'gifts' | 'redemptions'>;
  readonly hash: KeyedHash;
}

/** What an identifier names: one gift, or all gifts of a transaction. */
export interface NamedGifts {
  readonly transactionId: string;
  readonly giftIds: readonly string[];
  /** The transaction's stream. */
  readonly purchase: readonly RecordedEvent[];
}

const PARKED: readonly ParkedName[] = ['purchase', 'notification'];
/** No id is longer. */
const MAX_ID = 64;
/** Streams read side by side. */
const READS = 32;

/**
 * What a gift's id or shortcode, a redemption's id or a transaction's id names; `undefined`: nothing that is known.
 * @throws UnavailableError, also while the read model can't say yet whether it is known
 */
export async function namedGifts(deps: HistoryDeps, identifier: string): Promise<NamedGifts | undefined> {
  if (identifier === '' || identifier.length > MAX_ID) return undefined;
  const purchase = await deps.events.read(transactionStream(identifier));
  const [bought] = purchase;
  if (bought !== undefined) {
    const { seed, receivers } = bought.data as GiftsPurchased['data'];
    return { transactionId: identifier, purchase, giftIds: deriveGiftIds(seed, receivers.length).map((ids) => ids.gift_id) };
  }
  const giftId = giftIdOf(identifier);
  const transactionId = giftId === undefined ? undefined : await transactionOf(deps, giftId);
  if (giftId !== undefined && transactionId !== undefined) return oneGift(deps, giftId, transactionId);
  const redeemed = await deps.models.redemptions.get(identifier);
  const itsTransaction = redeemed === undefined ? undefined : await transactionOf(deps, redeemed.gift_id);
  return redeemed === undefined || itsTransaction === undefined ? undefined : oneGift(deps, redeemed.gift_id, itsTransaction);
}

async function oneGift({ events }: HistoryDeps, giftId: string, transactionId: string): Promise<NamedGifts> {
  return { transactionId, giftIds: [giftId], purchase: await events.read(transactionStream(transactionId)) };
}

async function transactionOf({ events, models }: HistoryDeps, giftId: string): Promise<string | undefined> {
  const [issued] = await events.read(giftStream(giftId), { limit: 1 });
  const known = (issued?.data as { readonly transaction_id?: string } | undefined)?.transaction_id;
  return known ?? (await models.gifts.get(giftId))?.transaction_id;
}

/** Every event of these gifts' lives, in log order. Of a purchase of several, only the receivers of these gifts stand in it. @throws UnavailableError */
export async function giftHistory(deps: HistoryDeps, { transactionId, giftIds, purchase }: NamedGifts): Promise<RecordedEvent[]> {
  const { events } = deps;
  const bought = purchase[0]?.data as GiftsPurchased['data'] | undefined;
  const wanted = new Set(giftIds);
  const all: RecordedEvent[] = purchase.map((event) => (event.type === 'GiftsPurchased' ? withOwnReceivers(event, wanted) : event));
  if (bought !== undefined) all.push(...(await events.read(walletStream(bought.payment_reference))).filter(({ data }) => names(data, 'transaction_id', transactionId)));
  for (const name of PARKED) {
    for (const event of await events.read(parkedStream(name))) {
      // A transaction's parked work concerns all its gifts; a gift's only itself.
      if (names(event.data, 'transaction_id', transactionId) && (name === 'purchase' || wanted.has((event.data as { readonly entity?: string }).entity ?? ''))) all.push(event);
    }
  }
  for (let from = 0; from < giftIds.length; from += READS) {
    const lives = await Promise.all(giftIds.slice(from, from + READS).map(async (giftId) => lifeOf(deps, giftId)));
    for (const life of lives) all.push(...life);
  }
  return all.sort((one, other) => (one.position < other.position ? -1 : one.position > other.position ? 1 : one.revision - other.revision));
}

/** What stands in the gift's own streams, and how it came by its voucher's code. */
async function lifeOf({ events, hash }: HistoryDeps, giftId: string): Promise<RecordedEvent[]> {
  const [own, told] = await Promise.all([events.read(giftStream(giftId)), events.read(notificationStream(giftId))]);
  const life = [...own, ...told];
  for (const event of own) {
    if (event.type !== 'VoucherAssigned') continue;
    const { segment_id, code } = event.data as VoucherAssigned['data'];
    const drawn = await events.read(voucherCodeStream(segment_id, hash('code', code)));
    life.push(...drawn.filter(({ data }) => names(data, 'gift_id', giftId)));
  }
  return life;
}

function names(data: object, field: string, id: string): boolean {
  return (data as Readonly<Record<string, unknown>>)[field] === id;
}

/** Whom the other gifts of a purchase were for is nobody's business who asks about this one. */
function withOwnReceivers(event: RecordedEvent, giftIds: ReadonlySet<string>): RecordedEvent {
  const { receivers, seed, ...rest } = event.data as GiftsPurchased['data'];
  const ids = deriveGiftIds(seed, receivers.length);
  const own = receivers.filter((_, index) => giftIds.has(ids[index]?.gift_id ?? ''));
  return own.length === receivers.length ? event : { ...event, data: { ...rest, seed, receivers: own, other_receivers: receivers.length - own.length } };
}

/** Those up to a position. */
export function upTo(events: readonly RecordedEvent[], position: Position | undefined): RecordedEvent[] {
  return position === undefined ? [] : events.filter((event) => event.position <= position);
}
