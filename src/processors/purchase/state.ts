/** The purchase process (docs/api/purchases.md#purchase-outcome). Pure. */
import type { GiftIssued } from '../../domain/gift/events.js';
import type { NotificationFailed, NotificationSent } from '../../domain/notification.js';
import { CHARGE_STEP, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import type { ReversalEvent } from '../../domain/disputes.js';
import type { GiftsPurchased, PurchaseEvent, PurchaseReceiver } from '../../domain/purchase/events.js';
import type { RefundEvent } from '../../domain/refund.js';
import type { SendingEvent } from '../../domain/sending.js';
import type { Cause, Reaction } from '../runner/index.js';

/**
 * `bought`: the charge has not been requested; `charging`: it has, without an answer; `authenticating`: it waits for
 * the buyer; `charged`: gifts are being issued and receivers notified.
 */
export interface PurchaseWork {
  readonly stage: 'bought' | 'charging' | 'authenticating' | 'charged';
  readonly purchase: GiftsPurchased['data'];
  readonly purchasedAt: string;
  /** The last event of the transaction's stream. */
  readonly last: Cause;
  /** Number of gifts not issued yet, as far as the feed shows. */
  readonly toIssue: number;
  /** Number of receivers with an address whose first notification has not ended. */
  readonly toNotify: number;
}

export interface PurchaseIntent {
  readonly do: 'charge' | 'issue';
  readonly instance: string;
  /** The charge has not been requested, as far as the feed shows. */
  readonly fresh?: true;
}

/** Includes events of notifications: the purchase stays open while its receivers' phone numbers are needed. */
export type PurchaseTrigger =
  | Exclude<PurchaseEvent, RefundEvent | ReversalEvent | SendingEvent>
  | GiftIssued
  | NotificationSent
  | NotificationFailed
  | WorkParked
  | WorkRetried;

type PurchaseReaction = Reaction<PurchaseWork, PurchaseIntent>;

const NOTHING: PurchaseReaction = { state: undefined, intents: [] };

function isToBeNotified(receiver: PurchaseReceiver): boolean {
  return receiver.phone_id !== undefined || receiver.user_id !== undefined;
}

export function reactToPurchase(
  state: PurchaseWork | undefined,
  event: PurchaseTrigger,
  instance: string,
  cause: Cause,
): PurchaseReaction {
  if (event.type === 'GiftsPurchased') return bought(event.data, instance, cause);
  if (state === undefined) {
    if (event.type === 'WorkRetried') return { ...NOTHING, reopen: event.data.step };
    // The charge was parked before the provider's late answer, and the purchase continues from there.
    return event.type === 'PaymentCharged' ? { ...NOTHING, reopen: CHARGE_STEP } : NOTHING;
  }
  switch (event.type) {
    case 'ChargeStarted':
      // The process that appended this event requests the charge; another one only after a takeover.
      return { state: { ...state, stage: 'charging', last: cause }, intents: [] };
    case 'PaymentAuthenticationRequired':
      return { state: { ...state, stage: 'authenticating', last: cause }, intents: [] };
    case 'PaymentAuthenticationFailed':
      return goOn({ ...state, last: cause }, instance);
    case 'PaymentCharged':
      return goOn({ ...state, stage: 'charged', last: cause }, instance);
    case 'PaymentDeclined':
      return NOTHING;
    case 'GiftIssued':
      return left({ ...state, toIssue: state.toIssue - 1 });
    case 'NotificationSent':
    case 'NotificationFailed':
      return left({ ...state, toNotify: state.toNotify - 1 });
    case 'WorkParked':
      if (event.data.entity !== instance) return left({ ...state, toNotify: state.toNotify - 1 });
      // The charge was parked just as the provider answered: the gifts are to be issued all the same.
      return event.data.step === CHARGE_STEP && state.stage === 'charged'
        ? { state, intents: [{ do: 'issue', instance }] }
        : NOTHING;
    case 'WorkRetried':
      // The purchase is open, so it was not parked and needs no retry.
      return { state, intents: [] };
    default:
      return (event satisfies never, NOTHING);
  }
}

export function resumePurchase({ stage, toIssue }: PurchaseWork, instance: string): readonly PurchaseIntent[] {
  if (stage !== 'charged') return [{ do: 'charge', instance }];
  return toIssue > 0 ? [{ do: 'issue', instance }] : [];
}

function goOn(state: PurchaseWork, instance: string): PurchaseReaction {
  return { state, intents: resumePurchase(state, instance) };
}

function bought(purchase: GiftsPurchased['data'], instance: string, cause: Cause): PurchaseReaction {
  // A scheduled purchase is closed once its gifts are issued, and waits for no notification.
  const toNotify =
    purchase.send_at === undefined
      ? purchase.receivers.reduce((count, receiver) => (isToBeNotified(receiver) ? count + 1 : count), 0)
      : 0;
  const state: PurchaseWork = {
    stage: 'bought',
    purchase,
    purchasedAt: cause.at,
    last: cause,
    toIssue: purchase.receivers.length,
    toNotify,
  };
  return { state, intents: [{ do: 'charge', instance, fresh: true }] };
}

function left(state: PurchaseWork): PurchaseReaction {
  return state.toIssue <= 0 && state.toNotify <= 0 ? NOTHING : { state, intents: [] };
}
