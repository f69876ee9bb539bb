/**
 * All events of a gift's life, across streams: purchase, payment, issue, notifications, redemptions, vouchers, and
 * parked work (docs/support.md#shown-events).
 */
import { inParallel } from '../../lib/async/inParallel.js';
import type { VoucherAssigned } from '../../domain/gift/events.js';
import { giftStream } from '../../domain/gift/events.js';
import { deriveGiftIds, isGiftId } from '../../domain/giftIds.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { notificationStream } from '../../domain/notification.js';
import { PARKED_NAMES, type ParkedName, parkedStream } from '../../domain/parked.js';
import { type GiftsPurchased, transactionStream } from '../../domain/purchase/events.js';
import { voucherCodeStream } from '../../domain/voucherCode.js';
import { walletStream } from '../../domain/wallet.js';
import type { EventStore, Position, RecordedEvent } from '../../ports/eventStore.js';
import type { Subjects } from '../../runtime/personal/index.js';
import { slices } from '../../lib/async/slices.js';
import { redactOtherGifts } from './redactOtherGifts.js';
import { streamBetween } from './streamBetween.js';

/** Facts that stream names do not tell: the transaction of an unissued gift, and a redemption's gift. */
export interface KnownGifts {
  readonly gifts: { get(giftId: string): Promise<{ readonly transaction_id: string } | undefined> };
  readonly redemptions: { get(redemptionId: string): Promise<{ readonly gift_id: string } | undefined> };
}

export interface HistoryDeps {
  readonly events: EventStore;
  readonly models: KnownGifts;
  readonly hash: KeyedHash;
  readonly subjects: Pick<Subjects, 'secrets'>;
}

export interface NamedGifts {
  readonly transactionId: string;
  readonly giftIds: readonly string[];
  readonly purchase: readonly RecordedEvent[];
}

const MAX_ID = 64;
const PARALLEL_READS = 32;
/** Whether the entity of parked work is a gift; otherwise the work concerns all gifts of the transaction. */
const OF_ONE_GIFT: Readonly<Record<ParkedName, boolean>> = {
  purchase: false,
  notification: true,
  refund: false,
  dispute: false,
};
/** Types of the events that answer a request for money, by the type of the request. */
const ANSWERS: Readonly<Record<string, readonly string[]>> = {
  ChargeStarted: ['PaymentCharged', 'PaymentDeclined'],
  RefundStarted: ['GiftsRefunded', 'RefundRefused'],
};

/**
 * The gifts that an identifier names: the id of a gift, redemption or transaction; `undefined` where it is unknown.
 * @throws UnavailableError, also while the read model is behind
 */
export async function namedGifts(deps: HistoryDeps, identifier: string): Promise<NamedGifts | undefined> {
  if (identifier === '' || identifier.length > MAX_ID) return undefined;
  const purchase = await deps.events.read(transactionStream(identifier));
  const [bought] = purchase;
  if (bought !== undefined) {
    const { seed, receivers } = bought.data as GiftsPurchased['data'];
    return {
      transactionId: identifier,
      purchase,
      giftIds: deriveGiftIds(seed, receivers.length).map((ids) => ids.gift_id),
    };
  }
  const giftId = isGiftId(identifier) ? identifier : undefined;
  const transactionId = giftId === undefined ? undefined : await transactionOf(deps, giftId);
  if (giftId !== undefined && transactionId !== undefined) return oneGift(deps, giftId, transactionId);
  const redeemed = await deps.models.redemptions.get(identifier);
  const itsTransaction = redeemed === undefined ? undefined : await transactionOf(deps, redeemed.gift_id);
  return redeemed === undefined || itsTransaction === undefined
    ? undefined
    : oneGift(deps, redeemed.gift_id, itsTransaction);
}

async function oneGift({ events }: HistoryDeps, giftId: string, transactionId: string): Promise<NamedGifts> {
  return { transactionId, giftIds: [giftId], purchase: await events.read(transactionStream(transactionId)) };
}

async function transactionOf({ events, models }: HistoryDeps, giftId: string): Promise<string | undefined> {
  const [issued] = await events.read(giftStream(giftId), { limit: 1 });
  const known = (issued?.data as { readonly transaction_id?: string } | undefined)?.transaction_id;
  return known ?? (await models.gifts.get(giftId))?.transaction_id;
}

/** Events of the gifts, in log order. Other gifts of the purchase are redacted. @throws UnavailableError */
export async function giftHistory(
  deps: HistoryDeps,
  { transactionId, giftIds, purchase }: NamedGifts,
): Promise<RecordedEvent[]> {
  const { events } = deps;
  const time = slices();
  const share = redactOtherGifts(purchase, giftIds);
  const all: RecordedEvent[] = [...share.events];
  const ofThese = (event: RecordedEvent): boolean => names(event.data, 'transaction_id', transactionId);
  // The cause of a wallet credit is its refund, so credits of other gifts' refunds are left out.
  all.push(
    ...(await walletMoney(events, purchase)).filter(
      ({ data }) => !share.isOthers((data as { readonly cause?: string }).cause ?? ''),
    ),
  );
  const boughtAt = purchase[0]?.position ?? '';
  const requested = new Set(giftIds);
  for (const name of PARKED_NAMES) {
    for await (const page of streamBetween(events, parkedStream(name), boughtAt, undefined)) {
      all.push(
        ...page.filter((event) => {
          const { entity = '' } = event.data as { readonly entity?: string };
          return ofThese(event) && (!OF_ONE_GIFT[name] || requested.has(entity)) && !share.isOthers(entity);
        }),
      );
    }
  }
  await inParallel(giftIds, PARALLEL_READS, async (giftId) => {
    all.push(...(await lifeOf(deps, giftId)));
    if (time.due()) await time.rest();
  });
  return all.sort((one, other) =>
    one.position < other.position ? -1 : one.position > other.position ? 1 : one.revision - other.revision,
  );
}

/** Events of a prepaid wallet for the purchase: they lie between request and answer in the purchase's stream. */
async function walletMoney(events: EventStore, purchase: readonly RecordedEvent[]): Promise<RecordedEvent[]> {
  const { payment_reference, transaction_id } = (purchase[0]?.data ?? {}) as Partial<GiftsPurchased['data']>;
  const found = new Map<string, RecordedEvent>();
  for (const [index, requested] of purchase.entries()) {
    const answers = ANSWERS[requested.type];
    if (answers === undefined || payment_reference === undefined) continue;
    const { refund_id } = requested.data as { readonly refund_id?: string };
    const answered = purchase
      .slice(index)
      .find(
        ({ type, data }) => answers.includes(type) && (data as { readonly refund_id?: string }).refund_id === refund_id,
      );
    for await (const page of streamBetween(
      events,
      walletStream(payment_reference),
      requested.position,
      answered?.position,
    )) {
      for (const event of page)
        if (names(event.data, 'transaction_id', transaction_id ?? '')) found.set(event.id, event);
    }
  }
  return [...found.values()];
}

async function lifeOf({ events, hash }: HistoryDeps, giftId: string): Promise<RecordedEvent[]> {
  const [own, notification] = await Promise.all([
    events.read(giftStream(giftId)),
    events.read(notificationStream(giftId)),
  ]);
  const life = [...own, ...notification];
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

export function upTo(events: readonly RecordedEvent[], position: Position | undefined): RecordedEvent[] {
  return position === undefined ? [] : events.filter((event) => event.position <= position);
}
