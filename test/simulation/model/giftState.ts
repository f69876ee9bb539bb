/** The state of one gift in the reference model, and what follows from it. Plain JSON, so that states can be compared. */
import type { Receiver } from './operations.js';
import type { Installation, Product, User } from './installation.js';
import type { Expected } from './pattern.js';

/** What never changes of a gift. */
export interface GiftFacts {
  readonly id: string;
  readonly transaction: string;
  readonly product: Product;
  readonly buyer: string;
  /** As the buyer named it. */
  readonly receiver: Receiver;
  /** `purchased_at_date` of its purchase. */
  readonly boughtOn: string;
}

/** Whose a gift is (docs/api/gifts.md#gift-owner). */
export type Holder =
  | {
      readonly kind: 'user';
      readonly user: string;
      /** Why: the buyer named the user or the user's number, the user claimed it, or support gave it to the user. */
      readonly by: 'name' | 'number' | 'claim' | 'support';
    }
  /** No receiver: it is its sender's until a user claims it. */
  | { readonly kind: 'open' }
  /** A number that no user had at the purchase. */
  | { readonly kind: 'number' };

/** A redemption. What the service chooses is a variable (`?…`) until an answer has shown it. */
export interface Redemption {
  readonly id: string;
  readonly location: string;
  readonly creation: string;
  /** `updated_at`. */
  readonly updated: string;
  readonly redeemed: boolean;
  /** Who redeemed, and with which key. */
  readonly user: string;
  readonly key: string | null;
}

export interface Voucher {
  readonly id: string;
  readonly code: string;
  readonly segment: string;
}

/** An event of the feed about the gift (docs/api/events.md#event-types). */
export interface GiftEvent {
  readonly type: string;
  /** Fields of its `data` beside the ids of purchase and gift. */
  readonly data: Readonly<Record<string, string | boolean>>;
  /** Users who see it, beside the buyer: owners, and the merchant of a redemption. */
  readonly owners: readonly string[];
  readonly merchant: string | null;
}

/** What a key is known by: the request that came with it first, and the outcome that is replayed. */
export interface Kept {
  readonly request: string;
  readonly answer: Expected;
}

export interface GiftState {
  readonly payment: 'pending' | 'paid' | 'declined';
  readonly cancelled: boolean;
  readonly blocked: boolean;
  readonly holder: Holder;
  readonly voucher: Voucher | null;
  /** The gift that support gave in its place. */
  readonly replacedBy: string | null;
  /** The last valid day, and the present one. */
  readonly expiresOn: string;
  readonly today: string;
  /** The day before, while the clocks of some processes have it still; then any of both may be the present one. */
  readonly yesterday: string | null;
  /** The latest last. */
  readonly redemptions: readonly Redemption[];
  /** Keys that were cancelled before they redeemed: `{user} {key}`. */
  readonly voids: readonly string[];
  /** What the event feed says of it, in order. */
  readonly events: readonly GiftEvent[];
  /** By scope: user, route, and key. */
  readonly kept: Readonly<Record<string, Kept>>;
}

/** A day of the calendar some days later; both are `YYYY-MM-DD`. */
export function dayAfter(day: string, days: number): string {
  return new Date(Date.parse(`${day}T00:00:00Z`) + days * 86_400_000).toISOString().slice(0, 10);
}

/** The state in which a purchase leaves its gift, before its charge settles. */
export function boughtState(gift: GiftFacts, installation: Installation): GiftState {
  return {
    payment: 'pending',
    cancelled: false,
    blocked: false,
    holder: firstHolder(gift.receiver, installation),
    voucher: null,
    replacedBy: null,
    expiresOn: dayAfter(gift.boughtOn, gift.product.validDays),
    today: gift.boughtOn,
    yesterday: null,
    redemptions: [],
    voids: [],
    events: [],
    kept: {},
  };
}

function firstHolder({ user_id, phone_number }: Receiver, { users }: Installation): Holder {
  if (user_id !== undefined) return { kind: 'user', user: user_id, by: 'name' };
  if (phone_number === undefined) return { kind: 'open' };
  const owner = [...users.values()].find(({ phone }) => phone === phone_number);
  return owner === undefined ? { kind: 'number' } : { kind: 'user', user: owner.id, by: 'number' };
}

/** The owner; `undefined` where there is none yet. */
export function ownerOf(state: GiftState, gift: GiftFacts): string | undefined {
  if (state.holder.kind === 'user') return state.holder.user;
  return state.holder.kind === 'open' ? gift.buyer : undefined;
}

/** The latest redemption, reversed or not. */
export function latest({ redemptions }: GiftState): Redemption | undefined {
  return redemptions.at(-1);
}

export function isRedeemed(state: GiftState): boolean {
  return latest(state)?.redeemed === true;
}

export function isExpired({ today, expiresOn }: GiftState): boolean {
  return today > expiresOn;
}

/** `gift_status`, `status` and `status_code` (docs/api/gifts.md#gift-status). */
export function statusOf(state: GiftState): readonly [string, number, string] {
  if (state.payment === 'pending') return ['pending', 2, 'PE'];
  if (isRedeemed(state)) return ['redeemed', 1, 'RE'];
  if (state.cancelled || state.payment === 'declined') return ['cancelled', 3, 'CA'];
  return state.holder.kind === 'open' ? ['sent', 12, 'UC'] : ['sent', 5, 'SE'];
}

const worksFor = (user: User | undefined, gift: GiftFacts): user is User =>
  user?.merchant !== undefined && gift.product.merchants.includes(user.merchant);

/** Whether the path opens the gift for the user (docs/api/gifts.md#what-opens-a-gift). */
export function opens(byShortcode: boolean, user: User, state: GiftState, gift: GiftFacts): boolean {
  if (byShortcode || user.id === gift.buyer || user.id === ownerOf(state, gift)) return true;
  return worksFor(user, gift) && user.permissions.some((one) => one === 'redeem' || one === 'unredeem');
}

/** Whether the user may redeem for the gift's merchant. */
export function redeemsForMerchant(user: User, gift: GiftFacts): boolean {
  return worksFor(user, gift) && user.permissions.includes('redeem');
}

/** Whether the user may reverse this redemption, or a gift's without one (docs/api/gifts.md#who-unredeems). */
export function mayUnredeem(
  user: User,
  gift: GiftFacts,
  redemption: Redemption | undefined,
  { locations }: Installation,
): boolean {
  if (!worksFor(user, gift) || !user.permissions.includes('unredeem')) return false;
  const made = redemption === undefined ? undefined : locations.get(redemption.location);
  return made === undefined || !gift.product.merchants.includes(made) || made === user.merchant;
}

/** The state with one more event. @param before the state before it, whose owner sees it, too */
export function withEvent(
  state: GiftState,
  gift: GiftFacts,
  type: string,
  data: GiftEvent['data'] = {},
  more: { readonly before?: GiftState; readonly merchant?: string | undefined } = {},
): GiftState {
  const owners = [ownerOf(state, gift), more.before === undefined ? undefined : ownerOf(more.before, gift)];
  const event: GiftEvent = {
    type: `gift.${type}`,
    data,
    owners: [...new Set(owners.flatMap((owner) => owner ?? []))],
    merchant: more.merchant ?? null,
  };
  return { ...state, events: [...state.events, event] };
}

/** Marks the latest redemption, or the one with this number, as reversed. */
export function reverse(
  world: { readonly gift: GiftFacts; readonly installation: Installation },
  state: GiftState,
  number: number,
  bySupport = false,
): GiftState {
  const redemption = state.redemptions[number];
  if (redemption === undefined) throw new Error(`no redemption ${number}`);
  const reversed: Redemption = { ...redemption, redeemed: false, updated: `?${number}.updated` };
  const data = { redemption_id: redemption.id, location_id: redemption.location };
  return withEvent(
    { ...state, redemptions: state.redemptions.with(number, reversed) },
    world.gift,
    'unredeemed',
    bySupport ? { ...data, by_support: true } : data,
    { merchant: world.installation.locations.get(redemption.location) },
  );
}
