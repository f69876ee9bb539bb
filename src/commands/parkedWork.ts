import {
  CHARGE_STEP,
  discardWork,
  type ParkedEvent,
  type ParkedName,
  type ParkedWork,
  retryWork,
} from '../domain/parked.js';
import type { RecordedEvent, EventStore, Position } from '../ports/eventStore.js';
import { type CommandContext, partOf, type StreamState, transactOn, transact } from './transact.js';
import { type FoundWork, foundWork, findWork, type ParkedDeps } from './findParked.js';
import { transactionStream } from '../domain/purchase/events.js';
import { purchaseAggregate } from '../domain/purchase/state.js';
import { settleCharge } from '../domain/purchase/decisions.js';
import { giveUpDebit, walletAggregate, walletStream } from '../domain/wallet.js';
import { readGiftAndNotification, readPurchase } from './readStreams.js';
import { declineExchange, paidByGift } from './replaceGift.js';
import { HISTORY_ONLY } from '../domain/decider.js';
import { giftStream } from '../domain/gift/events.js';
import {
  type NotificationFailed,
  notificationAttempts,
  notificationStream,
  type Placed,
} from '../domain/notification.js';

export interface ParkedOutcome extends FoundWork {
  /** The command's event, appended now or (`replayed`) by an earlier run; absent: nothing was to be done. */
  readonly own?: RecordedEvent;
  readonly replayed: boolean;
}

/** @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`, `work_discarded`; UnavailableError */
export async function retryParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  return decided(deps, idOrEntity, context, ({ name, work }) => retryWork(name, work, reason));
}

/**
 * Discards the work, then records the notification as failed, or the charge as declined, so that neither stays open for
 * ever. The order matters: a discard that loses against a retry must not end the retried work. After a crash in
 * between, a second discard completes the first.
 * @throws Refusal `parked_work_not_found`, `parked_work_ambiguous`, `work_retried`; UnavailableError
 */
export async function discardParked(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  reason: string,
): Promise<ParkedOutcome> {
  const outcome = await decided(deps, idOrEntity, context, ({ work }) => discardWork(work, reason));
  const discarded = outcome.own ?? outcome.history.findLast(({ type }) => type === 'WorkDiscarded');
  if (discarded === undefined) return outcome;
  const { entity, step } = outcome.work;
  if (outcome.name === 'notification') await giveUpNotification(deps.events, entity, context, discarded.position);
  if (outcome.name === 'purchase' && step === CHARGE_STEP) await giveUpCharge(deps.events, entity, context);
  return outcome;
}

/**
 * Whether the discard of this work, at the position `discarded`, was interrupted: the charge or the notification that
 * it ends has no outcome yet.
 * @throws UnavailableError
 */
export async function isDiscardOpen(
  events: Pick<EventStore, 'read'>,
  { name, step, entity }: Pick<ParkedWork, 'step' | 'entity'> & { readonly name: ParkedName },
  discarded: Position,
): Promise<boolean> {
  if (name === 'purchase') return step === CHARGE_STEP && (await readPurchase(events, entity)).status === 'pending';
  if (name !== 'notification') return false;
  const { next } = notificationAttempts(...(await readGiftAndNotification(events, entity)));
  if (next.do === 'nothing') return false;
  const { occasion } = next.do === 'find out' ? next.attempt : next;
  return occasion.position <= discarded;
}

async function decided(
  deps: ParkedDeps,
  idOrEntity: string,
  context: CommandContext,
  decide: (found: FoundWork) => readonly ParkedEvent[],
): Promise<ParkedOutcome> {
  let requested = idOrEntity;
  const read = async (): Promise<StreamState<FoundWork>> => {
    const found = await findWork(deps, requested, context);
    // After a lost race the command is for the same work, not for other work of its entity.
    requested = found.state.id;
    return found;
  };
  const { state, history, own, replayed } = await transactOn(deps.events, { kind: 'parked', read }, context, decide);
  const [event] = own;
  if (event === undefined) return { ...state, replayed };
  // A repeated command gets its first answer, without later events.
  const then = history.filter(({ revision }) => revision <= event.revision);
  return { ...foundWork(state.id, state.name, then, event.revision).state, own: event, replayed };
}

const BY_SUPPORT = { provider: 'support', code: 'discarded' } as const;

/**
 * Declines an open charge; a wallet that had paid is credited, and a replacement whose gift was given up for it stays
 * paid. No event for a settled charge. A person must first check whether the card's provider took the money. A charge
 * that the provider reports later is refunded, and the reconciliation finds the rest.
 * @throws UnavailableError
 */
export async function giveUpCharge(events: EventStore, transactionId: string, context: CommandContext): Promise<void> {
  const state = await readPurchase(events, transactionId);
  if (state.status !== 'pending') return;
  const { payment_reference, total, replaces } = state.purchase;
  // One discard of a group may give up several charges of one wallet, and several replacements of one gift.
  const part = partOf(context);
  if (state.chargeBy?.kind !== 'card' && replaces === undefined) {
    // A card's reference has no wallet stream.
    await transact(events, walletAggregate, walletStream(payment_reference), part, (wallet, history) =>
      history.length === 0 ? [] : giveUpDebit(wallet, { transaction_id: transactionId, amount: total }),
    );
  }
  const isPaid = await declineExchange(events, state.purchase, BY_SUPPORT.code, async (source, decide) =>
    transactOn(events, source, part, decide),
  );
  await transact(events, purchaseAggregate, transactionStream(transactionId), context, (purchase) =>
    settleCharge(
      purchase,
      isPaid && replaces !== undefined ? paidByGift(replaces.gift_id) : { type: 'PaymentDeclined', data: BY_SUPPORT },
    ),
  );
}

/** Cause in `NotificationFailed`; support's reason is in the event that discards the work. */
const ABANDONED = 'given up by support';

/**
 * Fails each notification of a gift that was requested before the position `before` and is not settled.
 * @throws UnavailableError
 */
async function giveUpNotification(
  events: EventStore,
  giftId: string,
  context: CommandContext,
  before: Position,
): Promise<void> {
  const gift = await events.read(giftStream(giftId));
  await transact(events, HISTORY_ONLY, notificationStream(giftId), context, (_, history) => {
    const given: NotificationFailed[] = [];
    let log: readonly Placed[] = history;
    for (;;) {
      const { next } = notificationAttempts(gift, log);
      if (next.do === 'nothing') return given;
      const { number, occasion } = next.do === 'find out' ? next.attempt : next;
      if (occasion.position > before) return given;
      const failed: NotificationFailed = {
        type: 'NotificationFailed',
        data: { cause: ABANDONED, attempt: number, asked_by: occasion.id },
      };
      given.push(failed);
      log = [...log, { ...failed, id: `${given.length}`, at: context.now, position: '', revision: 0 }];
    }
  });
}
