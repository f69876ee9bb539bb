/** Another gift at no charge in place of one that was lost to its owner (docs/support.md#replaced-gifts). */
import { isStaff, ownerByPhone, phoneStream } from '../domain/account.js';
import { presentReceiver } from '../domain/gift/decisions.js';
import {
  type GiftEvent,
  type GiftOfPurchase,
  type GiftReplaced,
  giftStream,
  type Receiver,
} from '../domain/gift/events.js';
import { giftIdsIn } from '../domain/giftIds.js';
import { purchaseSubject } from '../domain/personalFields.js';
import { issueGifts } from '../domain/purchase/decisions.js';
import { isDisputed } from '../domain/purchase/disputes.js';
import { type GiftsPurchased, type PaymentCharged, transactionStream } from '../domain/purchase/events.js';
import { type MadePurchase, type Purchase, purchaseAggregate, reversalsOf } from '../domain/purchase/state.js';
import { Refusal } from '../domain/refusal.js';
import { declineReplacement, declinedFor, replace } from '../domain/supportActions.js';
import { randomBytes } from '../lib/world.js';
import type { EventStore } from '../ports/eventStore.js';
import { accountInLog } from '../projections/accounts.js';
import { openText, sealText, type Subjects } from '../runtime/personal/index.js';
import { type CommandContext, type Source, type Transacted, transact } from './transact.js';
import { type FoundGift, giftSource, giftToIssue, withIssue } from './giftSource.js';
import { foundGift } from './loadGift.js';
import { transactionIdOf } from './purchaseGifts.js';
import { readPurchase, readReservation } from './readStreams.js';
import { type SupportDeps, supportAction } from './supportAction.js';

type Reads = Pick<EventStore, 'read'>;

export interface ReplaceDeps extends SupportDeps {
  readonly subjects: Subjects;
}

/** The part of a purchase on which it depends whether a gift is exchanged for it. */
type Replacing = Pick<GiftsPurchased['data'], 'transaction_id' | 'seed' | 'replaces' | 'reason'>;

/** The purchase process declined the purchase while the command ran. */
class DeclinedError extends Error {}

/**
 * Appends a purchase at no charge, then exchanges the old gift for it. Where the command ends in between, the purchase
 * process exchanges the gift, or declines the purchase. Both are decided in the old gift's stream: a gift is never
 * given for a declined purchase, which issues none. A repeat of the command then makes another one. `voided`: the
 * issuer has made an issued code worthless.
 * @throws Refusal `gift_not_found`, `receiver_not_found`, or as `decideExchange`; UnavailableError
 */
export async function replaceGift(
  deps: ReplaceDeps,
  giftId: string,
  context: CommandContext,
  how: { readonly voided: boolean; readonly reason: string },
): Promise<Transacted> {
  const { events } = deps;
  for (let number = 1; ; number++) {
    const made = await makePurchase(deps, giftId, context, how, number);
    if (made.state.status === 'declined') continue;
    const replacing = made.own[0]?.data as Replacing;
    try {
      const given = await supportAction(deps, giftId, context, async (found) => {
        if (declinedFor(found.gift, replacing.transaction_id) !== undefined) throw new DeclinedError();
        const decided = await decideExchange(events, found, replacing, context.now);
        // A process of an earlier release declines without an event of the gift.
        const { status } = await readPurchase(events, replacing.transaction_id);
        if (status === 'declined') throw new DeclinedError();
        return decided;
      });
      // The purchase process may have been first, as the same command.
      return { ...given, replayed: made.replayed };
    } catch (error) {
      if (!(error instanceof DeclinedError)) throw error;
    }
  }
}

/** `number`: of the command's purchases, from 1. */
async function makePurchase(
  deps: ReplaceDeps,
  giftId: string,
  context: CommandContext,
  { voided, reason }: { readonly voided: boolean; readonly reason: string },
  number: number,
): Promise<Transacted<Purchase>> {
  const { events } = deps;
  const { commandId } = context;
  const transaction_id = transactionIdOf({ commandId: number === 1 ? commandId : `${commandId} ${number}` });
  return transact(events, purchaseAggregate, transactionStream(transaction_id), context, async () => {
    const found = await foundGift(deps, giftId, await events.read(giftStream(giftId)));
    const history = await events.read(transactionStream(found.gift.issued.transaction_id));
    const client = history[0]?.metadata.by.client;
    const replacing = {
      transaction_id,
      seed: randomBytes(32).toString('hex'),
      reason,
      replaces: {
        gift_id: giftId,
        transaction_id: found.gift.issued.transaction_id,
        ...(client === undefined ? {} : { client_id: client }),
        ...(voided ? { voided } : {}),
      },
    };
    await decideExchange(events, found, replacing, context.now);
    return [{ type: 'GiftsPurchased', data: await purchaseLike(deps, found, replacing) }];
  });
}

/** The payment of the purchase that replaces this gift. */
export const paidByGift = (giftId: string): PaymentCharged => ({
  type: 'PaymentCharged',
  data: { amount: 0, provider: 'replacement', charge_id: `replacement-${giftId}` },
});

/**
 * Decides whether a gift is exchanged for that of another purchase. `now`: ISO 8601, UTC.
 * @throws Refusal `money_went_back`, or as `replace`; UnavailableError
 */
export async function decideExchange(
  events: Reads,
  found: FoundGift,
  { transaction_id, seed, replaces, reason = '' }: Replacing,
  now: string,
): Promise<GiftReplaced[]> {
  const { gift, payment } = found;
  const replaced_by = replacementIn({ transaction_id, seed });
  const decided = replace(gift, { now, payment }, { replaced_by, reason, voided: replaces?.voided === true });
  if (decided.length === 0) return [];
  const reversals = reversalsOf(await boughtWith(events, found));
  if (isDisputed(reversals)) throw new Refusal('gift_disputed');
  if (reversals.refunded.total > 0) throw new Refusal('money_went_back');
  return decided;
}

const replacementIn = ({ transaction_id, seed }: Pick<Replacing, 'transaction_id' | 'seed'>): GiftOfPurchase => ({
  gift_id: giftIdsIn(seed, 1)(0).gift_id,
  transaction_id,
});

/**
 * Appends to the replaced gift's stream that it is never given up for this purchase, unless it was: only then may the
 * purchase be declined. A gift that is paid for and not issued yet is issued in the same append.
 * @param run runs the decision as a command on the gift
 * @returns whether the gift was given up for the purchase
 * @throws as `run`
 */
export async function declineExchange(
  events: Reads,
  purchase: Pick<GiftsPurchased['data'], 'transaction_id' | 'seed' | 'replaces'>,
  code: string,
  run: (source: Source<FoundGift>, decide: (found: FoundGift) => readonly GiftEvent[]) => Promise<unknown>,
): Promise<boolean> {
  const { transaction_id, replaces } = purchase;
  if (replaces === undefined) return false;
  let exchanged = false;
  await run(
    giftSource(events, replaces.gift_id, async () => unissuedOf(events, replaces)),
    (found) => {
      exchanged = found.gift.replacedBy?.transaction_id === transaction_id;
      return withIssue(found, declineReplacement(found.gift, { replaced_by: replacementIn(purchase), code }));
    },
  );
  return exchanged;
}

async function unissuedOf(events: Reads, { gift_id, transaction_id }: GiftOfPurchase): Promise<FoundGift> {
  const made = await readPurchase(events, transaction_id);
  if (made.status !== 'none')
    for (const { giftId, event } of issueGifts(made.purchase, made.purchasedAt))
      if (giftId === gift_id) return giftToIssue(event, made.status);
  throw new Error('a purchase replaces a gift that was never bought');
}

async function boughtWith(events: Reads, { gift }: FoundGift): Promise<MadePurchase> {
  const purchase = await readPurchase(events, gift.issued.transaction_id);
  if (purchase.status === 'none') throw new Error('a gift names a purchase that was never made');
  return purchase;
}

/** Product, price, buyer, owner, message and last valid day are those of the old gift. */
async function purchaseLike(
  { events, subjects }: ReplaceDeps,
  found: FoundGift,
  replacing: Replacing,
): Promise<GiftsPurchased['data']> {
  const { purchase } = await boughtWith(events, found);
  const { buyer_id, product_id, brand_id, product_name, sale_price, reference_id } = purchase;
  const receiver = await receiverOfReplacement(events, found.gift);
  const message = await openText(subjects, purchase.message);
  const [subject = ''] = message === '' ? [] : await subjects.ids([purchaseSubject(replacing.transaction_id)]);
  return {
    ...replacing,
    buyer_id,
    product_id,
    brand_id,
    product_name,
    sale_price,
    total: 0,
    payment_reference: '',
    expires_on: found.gift.issued.expires_on,
    message: await sealText(subjects, subject, message),
    receivers: [receiver],
    ...(reference_id === undefined ? {} : { reference_id }),
  };
}

/**
 * The gift's owner as a user, since the number may have come to another person (docs/api/gifts.md#gift-owner).
 * @throws Refusal `receiver_not_found`; UnavailableError
 */
async function receiverOfReplacement(events: Reads, gift: FoundGift['gift']): Promise<Receiver> {
  const receiver = presentReceiver(gift);
  const { phone_id } = receiver;
  const owner =
    receiver.user_id ??
    (phone_id === undefined
      ? undefined
      : ownerByPhone(
          await readReservation(events, phoneStream(phone_id)),
          gift.receiverSince ?? gift.issued.purchased_at,
        ));
  if (owner === undefined) return receiver;
  const user = await accountInLog(events, `user-${owner}`);
  if (user?.entry !== 'user' || !user.active || isStaff(user)) throw new Refusal('receiver_not_found');
  return { user_id: owner };
}
