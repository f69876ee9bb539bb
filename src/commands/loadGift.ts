/**
 * Everything a decision about a gift needs, gathered from the streams: the gift, its purchase's payment, who owns it.
 */
import { ownerByPhone, phoneStream, reservationAggregate } from '../domain/account.js';
import { copyWith } from '../domain/copyWith.js';
import { fold, type DomainEvent } from '../domain/decider.js';
import {
  type GiftCaller,
  type GiftEvent,
  type GiftFacts,
  type GiftIssued,
  type IssuedGift,
  giftAggregate,
  giftStream,
} from '../domain/gift.js';
import { giftIdsIn } from '../domain/giftIds.js';
import { type GiftsPurchased, issueGift, purchaseAggregate, transactionStream } from '../domain/purchase.js';
import { Refusal } from '../domain/refusal.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CatalogueView } from '../projections/catalogue/view.js';
import { getAtLogEnd, MISSING_WAIT_MS } from '../runtime/readmodels/getAtLogEnd.js';
import type { GiftDocument } from '../projections/gifts.js';
import type { ReadModel } from '../runtime/readmodels/readModel.js';
import { type CommandContext, ownEvents } from './context.js';
import { type Handled, handle } from './handle.js';

/** What the gift commands work with. */
export interface GiftDeps {
  readonly events: EventStore;
  readonly gifts: ReadModel<GiftDocument>;
  readonly catalogue: CatalogueView;
}

/** A gift as a command found it. */
export interface LoadedGift {
  readonly giftId: string;
  /** The gift's stream; empty until the gift is issued. */
  readonly history: readonly RecordedEvent[];
  readonly gift: IssuedGift;
  /**
   * What issues the gift, where its payment is charged and its stream still empty: goes with the command's own event in
   * one append.
   */
  readonly issue?: GiftIssued;
  readonly facts: GiftFacts;
  /** Whether `facts` say who owns the number that it was sent to. */
  readonly ownerWanted: OwnerWanted;
}

/**
 * Whether the decision about a gift depends on who owns the number that it was sent to; where it does not, a stream
 * less is read.
 */
export type OwnerWanted = (caller: GiftCaller) => boolean;

/**
 * Loads a gift as `user` would decide about it now. `ownerWanted`: default always.
 * @throws Refusal `gift_not_found`; UnavailableError, also while the read model can't say yet whether the gift exists.
 */
export async function loadGift(
  deps: GiftDeps,
  giftId: string,
  user: UserDocument,
  now: string,
  ownerWanted: OwnerWanted = () => true,
): Promise<LoadedGift> {
  return judge(deps, giftId, await deps.events.read(giftStream(giftId)), user, now, ownerWanted);
}

/**
 * Whether this command has appended to the gift's stream before: then it is answered as it was, whatever has changed
 * since.
 */
export function hasRun(loaded: LoadedGift, context: CommandContext): boolean {
  return ownEvents(loaded.history, context).length > 0;
}

/**
 * Runs a decision on a gift; an unissued gift whose payment is charged is issued in the same append.
 * @throws Refusal, UnavailableError
 */
export async function handleGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  decide: (gift: IssuedGift, facts: GiftFacts) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<Handled> {
  const decideOn = async (history: readonly RecordedEvent[]): Promise<readonly DomainEvent[]> => {
    const current =
      history === loaded.history
        ? loaded
        : await judge(deps, loaded.giftId, history, user, context.now, loaded.ownerWanted);
    const decided = await decide(current.gift, current.facts);
    return decided.length > 0 && current.issue !== undefined ? [current.issue, ...decided] : decided;
  };
  return handle(deps.events, giftStream(loaded.giftId), context, decideOn, loaded.history);
}

async function judge(
  deps: GiftDeps,
  giftId: string,
  history: readonly RecordedEvent[],
  user: UserDocument,
  now: string,
  ownerWanted: OwnerWanted,
): Promise<LoadedGift> {
  const { payment, ...found } = await foundGift(deps, giftId, history);
  const caller = callerOf(deps.catalogue, found.gift.issued, user);
  const facts = { now, payment, caller };
  return {
    giftId,
    history,
    ...found,
    ownerWanted,
    facts: ownerWanted(caller) ? await withPhoneOwner(deps, found.gift, facts) : facts,
  };
}

/** A gift and how its payment stands; `issue` as in `LoadedGift`. */
export interface FoundGift {
  readonly gift: IssuedGift;
  readonly payment: GiftFacts['payment'];
  readonly issue?: GiftIssued;
}

/** The gift of a stream just read; where that is empty, as its purchase tells it. @throws as `loadGift` */
export async function foundGift(
  deps: Pick<GiftDeps, 'events' | 'gifts'>,
  giftId: string,
  history: readonly RecordedEvent[],
): Promise<FoundGift> {
  const issued = fold(giftAggregate, history);
  if (issued.status !== 'none') return { gift: issued, payment: 'charged' };
  // Told as missing while the read model is behind it would be kept for the caller's key, and whoever tries again be
  // refused for a day.
  const found = await getAtLogEnd(deps.events, deps.gifts, giftId, MISSING_WAIT_MS);
  if (found === undefined) throw new Refusal('gift_not_found');
  const purchase = fold(purchaseAggregate, await deps.events.read(transactionStream(found.transaction_id)));
  if (purchase.status === 'none') throw new Refusal('gift_not_found');
  const issue = issueOf(purchase.purchase, purchase.purchasedAt, found.index);
  const gift: IssuedGift = { status: 'issued', issued: issue.data, redemptions: [] };
  return { gift, payment: purchase.status, ...(purchase.status === 'charged' ? { issue } : {}) };
}

function issueOf(purchase: GiftsPurchased['data'], purchasedAt: string, index: number): GiftIssued {
  const { seed, receivers } = purchase;
  if (receivers[index] === undefined) throw new Error('the read model names a gift that its purchase does not have');
  return issueGift(purchase, purchasedAt, index, giftIdsIn(seed, index + 1)(index));
}

/** The facts with the owner of the number that the gift was sent to, as it is now. @throws UnavailableError */
export async function withPhoneOwner(
  deps: Pick<GiftDeps, 'events'>,
  gift: IssuedGift,
  facts: GiftFacts,
): Promise<GiftFacts> {
  const hash = gift.issued.receiver.phone_hash;
  if (hash === undefined) return facts;
  const phoneOwner = await ownerOfPhone(deps.events, hash, gift.receiverSince ?? gift.issued.purchased_at);
  return phoneOwner === undefined ? facts : copyWith(facts, { phoneOwner });
}

/**
 * The user as a gift's decisions see them: a merchant's user, and whether the gift is valid for the merchant. The
 * catalogue is asked for those only. @throws as the catalogue does
 */
export function callerOf(
  catalogue: Pick<CatalogueView, 'current'>,
  gift: Pick<GiftIssued['data'], 'product_id' | 'brand_id'>,
  user: UserDocument,
): GiftCaller {
  if (user.merchant_id === null) return { user_id: user.id };
  const valid = catalogue.current().validFor(gift, user.merchant_id);
  return { user_id: user.id, merchant: { id: user.merchant_id, valid, permissions: user.permissions } };
}

async function ownerOfPhone(events: EventStore, hash: string, sentAt: string): Promise<string | undefined> {
  const history = await events.read(phoneStream(hash));
  return ownerByPhone(fold(reservationAggregate, history), sentAt);
}
