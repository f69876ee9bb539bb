/**
 * The reference model of one gift: what each request does and is answered, by docs/api/gifts.md, in the order of checks
 * of docs/api/conventions.md#order-of-checks. Pure: what the service chooses by itself, ids and times, are variables.
 */
import {
  type GiftFacts,
  type GiftState,
  type Redemption,
  isRedeemed,
  latest,
  mayUnredeem,
  opens,
  ownerOf,
  redeemsForMerchant,
  reverse,
  withEvent,
} from './giftState.js';
import type { User } from './installation.js';
import {
  type Claim,
  type GetGift,
  type GiftOperation,
  type ListRedemptions,
  type LookUpKey,
  type Redeem,
  type Unredeem,
  bodyOf,
  routeOf,
} from './operations.js';
import { bind, type Expected, type Pattern } from './pattern.js';
import {
  CANCELLED,
  CANNOT_REDEEM,
  GIFT_NOT_FOUND,
  KEY_REUSED,
  NOT_PAID,
  type Possible,
  done,
  error,
  first,
  notAllowed,
  refused,
  replayed,
  unusable,
} from './refusals.js';
import { type GiftWorld, shownGift, shownRedemption } from './shown.js';
import { support } from './supportModel.js';
import { makeVoucher, voucherLookedUp } from './voucherModel.js';

/** What happens to a gift without a request to it. */
export type Happening =
  | { readonly kind: 'charged' }
  | { readonly kind: 'declined' }
  /** A refund cancels it. */
  | { readonly kind: 'refunded' }
  /** A refund leaves it out, since it is redeemed. */
  | { readonly kind: 'not refunded' }
  /** A day begins. Until it has begun everywhere, some processes may have the day before still. */
  | { readonly kind: 'day'; readonly day: string; readonly everywhere: boolean }
  | { readonly kind: 'day everywhere' };

/** A request to a gift. */
export interface GiftRequest<O extends GiftOperation = GiftOperation> {
  readonly client: string;
  readonly operation: O;
  /** Whether another request with the key that is looked up was in progress. */
  readonly keyInProgress?: boolean;
  /** Whether any other request has its key or looks it up. Else the state need not note its outcome. */
  readonly keyIsShared?: boolean;
  /** Whether any answer depends on what its key keeps. Else the state need not note an outcome that changes nothing. */
  readonly refusalMatters?: boolean | undefined;
}

/** @returns the state after what happened; `undefined` where it can't happen in this state */
export function happen(gift: GiftFacts, state: GiftState, happening: Happening): GiftState | undefined {
  switch (happening.kind) {
    case 'charged':
      return state.payment === 'pending' ? withEvent({ ...state, payment: 'paid' }, gift, 'issued') : undefined;
    case 'declined':
      return state.payment === 'pending' ? { ...state, payment: 'declined' } : undefined;
    case 'refunded':
      return unrefundable(state) ? undefined : withEvent({ ...state, cancelled: true }, gift, 'cancelled');
    case 'not refunded':
      return isRedeemed(state) ? state : undefined;
    case 'day':
      if (happening.day <= state.today) return undefined;
      return { ...state, today: happening.day, yesterday: happening.everywhere ? null : state.today };
    case 'day everywhere':
      return { ...state, yesterday: null };
  }
}

const unrefundable = (state: GiftState): boolean =>
  state.payment !== 'paid' || state.cancelled || isRedeemed(state) || state.voucher !== null;

/** All ways in which a request may end; mostly there is one. */
export function apply(world: GiftWorld, state: GiftState, request: GiftRequest): readonly Possible[] {
  return onEachDay(state).flatMap((seen) =>
    applyOn(world, seen, request).map((one) => ({ ...one, state: onSameDay(one.state, { seen, state }) })),
  );
}

/** The state as processes may see it, whose clocks differ. */
export function onEachDay(state: GiftState): readonly GiftState[] {
  return state.yesterday === null ? [state] : [state, { ...state, today: state.yesterday }];
}

/** What came of `seen`, with the day of the state. */
const onSameDay = (next: GiftState, { seen, state }: { readonly seen: GiftState; readonly state: GiftState }) =>
  next === seen ? state : { ...next, today: state.today };

function applyOn(world: GiftWorld, state: GiftState, request: GiftRequest): readonly Possible[] {
  const { client, operation } = request;
  const user = world.installation.users.get(client);
  if (user === undefined) throw new Error(`no user ${client}`);
  const read = (...answers: readonly Expected[]): Possible[] => answers.map((answer) => refused(state, answer));
  switch (operation.kind) {
    case 'getGift':
      return read(lookedUp(world, state, user, operation));
    case 'listRedemptions':
      return read(listed(world, state, user, operation));
    case 'lookUpKey':
      return read(...keyLookedUp(state, user, operation, request.keyInProgress === true));
    case 'getVoucher':
      return read(voucherLookedUp(world, state, user));
    case 'redeem':
      return once(state, request, () => redeem(world, state, user, operation));
    case 'unredeem':
      return once(state, request, () =>
        nowNamed(state, operation).map((named) => unredeem(world, named, user, operation)),
      );
    case 'claim':
      return once(state, request, () => [claim(world, state, user, operation)]);
    case 'makeVoucher':
      return once(state, request, () => makeVoucher(world, state, user, operation));
    default:
      return once(state, request, () => support(world, state, user, operation));
  }
}

/** A request with a key is decided once, and its outcome is replayed (docs/api/conventions.md#idempotency-keys). */
function once(
  state: GiftState,
  { client, operation, keyIsShared = true, refusalMatters = true }: GiftRequest,
  decide: () => readonly Possible[],
): readonly Possible[] {
  const key = 'key' in operation ? operation.key : undefined;
  if (key === undefined || !keyIsShared) return decide();
  const scope = keyScope(client, routeOf(operation), key);
  const body = bodyOf(operation);
  const known = state.kept[scope];
  if (known !== undefined) return [refused(state, known.request === body ? replayed(known.answer) : KEY_REUSED)];
  return decide().map((one) => {
    if (!one.kept || (one.state === state && !refusalMatters)) return one;
    const outcomes = { ...one.state.kept, [scope]: { request: body, answer: one.answer } };
    // In one order, so that states are equal whichever outcome came first: else n of them make n! states.
    const kept = Object.fromEntries(Object.entries(outcomes).toSorted(([a], [b]) => (a < b ? -1 : 1)));
    return { ...one, state: { ...one.state, kept } };
  });
}

const VOIDED = error(422, 'Redemption voided.');

/** The name under which a state keeps the outcome of a key. */
export const keyScope = (client: string, route: string, key: string): string => `${client} ${route} ${key}`;

function redeem(world: GiftWorld, state: GiftState, user: User, { location, key }: Redeem): Possible[] {
  const { gift, installation } = world;
  const asOwner = user.id === ownerOf(state, gift);
  if (!asOwner && !redeemsForMerchant(user, gift)) return [refused(state, CANNOT_REDEEM)];
  if (key !== undefined && state.voids.includes(`${user.id} ${key}`)) return [refused(state, VOIDED)];
  const merchant = installation.locations.get(location);
  if (merchant === undefined || (!asOwner && merchant !== user.merchant))
    return [refused(state, error(422, 'Invalid location.'))];
  const why = unusable(state);
  if (why !== undefined) return [refused(state, why)];
  const number = state.redemptions.length;
  const made: Redemption = {
    id: `?${number}.id`,
    location,
    creation: `?${number}.creation`,
    updated: `?${number}.creation`,
    redeemed: true,
    user: user.id,
    key: key ?? null,
  };
  const next = withEvent(
    { ...state, redemptions: [...state.redemptions, made] },
    gift,
    'redeemed',
    { redemption_id: made.id, location_id: location },
    { merchant: installation.locations.get(location) },
  );
  return [done(next, first(201, { data: shownRedemption(made, gift) }))];
}

/**
 * The state, and those in which a redemption that no answer has named yet has the id that is requested: its client may
 * know the id from an answer that proves nothing.
 */
function nowNamed(state: GiftState, { redemption }: Unredeem): GiftState[] {
  if (redemption === 'latest' || redemption.startsWith('key:')) return [state];
  if (state.redemptions.some(({ id }) => id === redemption)) return [state];
  return [
    state,
    ...state.redemptions.flatMap(({ id }) => (id.startsWith('?') ? [bind(state, { [id]: redemption })] : [])),
  ];
}

function unredeem(world: GiftWorld, state: GiftState, user: User, operation: Unredeem): Possible {
  const { gift, installation } = world;
  const byKey = operation.redemption.startsWith('key:') ? operation.redemption.slice(4) : undefined;
  const target =
    byKey !== undefined
      ? state.redemptions.find((one) => one.user === user.id && one.key === byKey)
      : operation.redemption === 'latest'
        ? latest(state)
        : state.redemptions.find(({ id }) => id === operation.redemption);
  if (!mayUnredeem(user, gift, target, installation)) return refused(state, error(403, 'Cannot unredeem this gift.'));
  if (byKey !== undefined) {
    if (state.payment === 'pending') return refused(state, NOT_PAID);
    if (state.payment === 'declined') return refused(state, CANCELLED);
    if (target === undefined) return voided(state, user, byKey, gift);
    if (!target.redeemed) return done(state, first(200, { data: shownRedemption(target, gift) }));
  }
  if (target === undefined)
    return refused(state, operation.redemption === 'latest' ? GIFT_NOT_FOUND : error(404, 'Redemption not found'));
  if (!target.redeemed) return refused(state, error(422, 'gift not redeemed.'));
  const number = state.redemptions.indexOf(target);
  const next = reverse(world, state, number);
  const reversed = next.redemptions[number] ?? target;
  return done(next, first(200, { data: shownRedemption(reversed, gift) }));
}

/** A key that redeemed nothing, and now never will (docs/api/gifts.md#cancel-a-redemption). */
function voided(state: GiftState, user: User, key: string, gift: GiftFacts): Possible {
  const name = `${user.id} ${key}`;
  const next = state.voids.includes(name) ? state : { ...state, voids: [...state.voids, name].toSorted() };
  const data = { id: '*', gift_id: gift.id, redeemed: false, location_id: null };
  return done(next, first(200, { data }));
}

function claim(world: GiftWorld, state: GiftState, user: User, operation: Claim): Possible {
  const { gift } = world;
  const { holder } = state;
  const claimedByUser = holder.kind === 'user' && holder.by === 'claim';
  if (claimedByUser && holder.user === user.id) return done(state, first(200, { data: shownGift(world, state, user) }));
  const byId = operation.shortcode === undefined;
  if (byId && user.id !== gift.buyer && user.id !== ownerOf(state, gift)) return refused(state, GIFT_NOT_FOUND);
  if (claimedByUser) return refused(state, notAllowed('gift already claimed.'));
  if (holder.kind !== 'open') return refused(state, error(403, 'Cannot claim this gift.'));
  const why = unusable(state);
  if (why !== undefined) return refused(state, why);
  const next = withEvent(
    { ...state, holder: { kind: 'user', user: user.id, by: 'claim' } },
    gift,
    'claimed',
    {},
    {
      before: state,
    },
  );
  return done(next, first(200, { data: shownGift(world, next, user) }));
}

function lookedUp(world: GiftWorld, state: GiftState, user: User, { shortcode }: GetGift): Expected {
  if (!opens(shortcode !== undefined, user, state, world.gift)) return GIFT_NOT_FOUND;
  return first(200, { data: shownGift(world, state, user) });
}

function listed(world: GiftWorld, state: GiftState, user: User, { shortcode }: ListRedemptions): Expected {
  if (!opens(shortcode !== undefined, user, state, world.gift)) return GIFT_NOT_FOUND;
  const data = state.redemptions.toReversed().map((one) => shownRedemption(one, world.gift));
  return first(200, { data, next: null, has_more: false });
}

/** docs/api/conventions.md#look-up-an-idempotency-key, of redemptions. */
function keyLookedUp(state: GiftState, user: User, { of: key, gift }: LookUpKey, inProgress: boolean): Expected[] {
  const answered = (data: { readonly [name: string]: Pattern }): Expected =>
    first(200, { data: { key, gift_id: gift, ...data } });
  const made = state.redemptions.find((one) => one.user === user.id && one.key === key);
  if (made !== undefined) {
    const { id, location, redeemed } = made;
    return [
      answered({ status: 'done', redemption: { id, location_id: location, redeemed, updated_at: made.updated } }),
    ];
  }
  if (state.voids.includes(`${user.id} ${key}`)) return [answered({ status: 'void' })];
  const kept = state.kept[keyScope(user.id, `redeem ${gift}`, key)];
  const unseen = answered({ status: 'unseen' });
  if (kept === undefined) return [unseen];
  const done = answered({ status: 'done', answer: { status: kept.answer.status, body: kept.answer.body } });
  return inProgress ? [done, unseen] : [done];
}
