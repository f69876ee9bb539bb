import { isStaff, ownerByPhone, phoneStream, reservationAggregate } from '../domain/account.js';
import { copyWith } from '../lib/copyWith.js';
import { fold } from '../domain/decider.js';
import type { GiftEvent, GiftIssued } from '../domain/gift/events.js';
import type { IssuedGift } from '../domain/gift/state.js';
import type { GiftCaller, GiftFacts } from '../domain/gift/decisions.js';
import { giftIdsIn } from '../domain/giftIds.js';
import { issueGift } from '../domain/purchase/decisions.js';
import { Refusal } from '../domain/refusal.js';
import type { EventStore, RecordedEvent } from '../ports/eventStore.js';
import type { UserDocument } from '../projections/accounts.js';
import type { CatalogueView } from '../projections/catalogue/view.js';
import type { GiftDocument } from '../projections/gifts.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { type CommandContext, ownEvents, type StreamState, type Transacted, transactOn } from './transact.js';
import { type FoundGift, giftOf, giftSource, giftToIssue, withIssue } from './giftSource.js';
import { readPurchase } from './readStreams.js';

export interface GiftDeps {
  readonly events: EventStore;
  readonly gifts: ReadModel<GiftDocument>;
  readonly catalogue: CatalogueView;
}

export interface LoadedGift {
  readonly giftId: string;
  readonly gift: IssuedGift;
  readonly facts: GiftFacts;
  readonly needsOwner: NeedsOwner;
  /** The gift's stream as read, without events until the gift is issued. */
  readonly found: StreamState<FoundGift>;
}

/** Whether the decision depends on the owner of the receiver's phone number: if not, one stream less is read. */
type NeedsOwner = (caller: GiftCaller) => boolean;

/**
 * `needsOwner`: by default the owner of the phone number is always read.
 * @throws Refusal `gift_not_found`; UnavailableError, also while the read model can't say whether the gift exists
 */
export async function loadGift(
  deps: GiftDeps,
  giftId: string,
  user: UserDocument,
  now: string,
  needsOwner: NeedsOwner = () => true,
): Promise<LoadedGift> {
  const found = await giftSource(deps.events, giftId, async () => unissuedGift(deps, giftId)).read();
  const facts = await factsOf(deps, found.state, user, now, needsOwner);
  return { giftId, gift: found.state.gift, facts, needsOwner, found };
}

export function hasRun({ found }: LoadedGift, context: CommandContext): boolean {
  return ownEvents(found.history, context).length > 0;
}

/**
 * Runs a command on a loaded gift: appends the events that `decide` returns, or finds those of an earlier run. Where
 * the gift is paid for and not issued yet, its issue is appended with them. @throws Refusal, UnavailableError
 */
export async function handleGift(
  deps: GiftDeps,
  loaded: LoadedGift,
  user: UserDocument,
  context: CommandContext,
  decide: (
    gift: IssuedGift,
    facts: GiftFacts,
    history: readonly RecordedEvent[],
  ) => readonly GiftEvent[] | Promise<readonly GiftEvent[]>,
): Promise<Transacted> {
  const { giftId, needsOwner } = loaded;
  const source = giftSource(deps.events, giftId, async () => unissuedGift(deps, giftId), loaded.found);
  return transactOn(deps.events, source, context, async (found, history) => {
    const facts =
      found === loaded.found.state ? loaded.facts : await factsOf(deps, found, user, context.now, needsOwner);
    return withIssue(found, await decide(found.gift, facts, history));
  });
}

async function factsOf(
  deps: GiftDeps,
  { gift, payment }: FoundGift,
  user: UserDocument,
  now: string,
  needsOwner: NeedsOwner,
): Promise<GiftFacts> {
  const caller = callerOf(deps.catalogue, gift.issued, user);
  const facts = { now, payment, caller };
  return needsOwner(caller) ? withPhoneOwner(deps, gift, facts) : facts;
}

/** @throws as `loadGift` */
export async function foundGift(
  deps: Pick<GiftDeps, 'events' | 'gifts'>,
  giftId: string,
  history: readonly RecordedEvent[],
): Promise<FoundGift> {
  return giftOf(history, async () => unissuedGift(deps, giftId));
}

/** @throws as `loadGift` */
export async function unissuedGift(deps: Pick<GiftDeps, 'events' | 'gifts'>, giftId: string): Promise<FoundGift> {
  const document = await deps.gifts.get(giftId);
  if (document === undefined) throw new Refusal('gift_not_found');
  const { index, transaction_id } = document;
  const made = await readPurchase(deps.events, transaction_id);
  if (made.status === 'none') throw new Refusal('gift_not_found');
  const { seed, receivers } = made.purchase;
  if (receivers[index] === undefined) throw new Error('the read model names a gift that its purchase does not have');
  return giftToIssue(issueGift(made.purchase, made.purchasedAt, index, giftIdsIn(seed, index + 1)(index)), made.status);
}

/** @throws UnavailableError */
export async function withPhoneOwner(
  deps: Pick<GiftDeps, 'events'>,
  gift: IssuedGift,
  facts: GiftFacts,
): Promise<GiftFacts> {
  const phoneId = gift.issued.receiver.phone_id;
  if (phoneId === undefined) return facts;
  const phoneOwner = await ownerOfPhone(deps.events, phoneId, gift.receiverSince ?? gift.issued.purchased_at);
  return phoneOwner === undefined ? facts : copyWith(facts, { phoneOwner });
}

/**
 * The caller of a command; for a merchant's user the catalogue determines whether the gift is valid at the merchant.
 * @throws as the catalogue does
 */
export function callerOf(
  catalogue: Pick<CatalogueView, 'current'>,
  gift: Pick<GiftIssued['data'], 'product_id' | 'brand_id'>,
  user: UserDocument,
): GiftCaller {
  const staff = isStaff(user);
  if (user.merchant_id === null) return { user_id: user.id, staff };
  const valid = catalogue.current().validFor(gift, user.merchant_id);
  return { user_id: user.id, staff, merchant: { id: user.merchant_id, valid, permissions: user.permissions } };
}

async function ownerOfPhone(events: EventStore, phoneId: string, sentAt: string): Promise<string | undefined> {
  const history = await events.read(phoneStream(phoneId));
  return ownerByPhone(fold(reservationAggregate, history), sentAt);
}
