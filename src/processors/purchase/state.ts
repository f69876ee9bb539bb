/** The purchase process (docs/api/purchases.md#purchase-outcome). Pure. */
import type { GiftIssued } from '../../domain/gift/events.js';
import { CHARGE_STEP, type WorkParked, type WorkRetried } from '../../domain/parked.js';
import type { ReversalEvent } from '../../domain/purchase/disputes.js';
import type { GiftsPurchased, PurchaseEvent } from '../../domain/purchase/events.js';
import type { RefundEvent } from '../../domain/purchase/refund.js';
import type { SendingEvent } from '../../domain/purchase/sending.js';
import type { Cause, Reaction } from '../runner/index.js';

/**
 * `bought`: the charge has not been requested; `charging`: it has, without an answer; `authenticating`: it waits for
 * the buyer; `charged`: gifts are being issued.
 */
export interface PurchaseWork {
  readonly stage: 'bought' | 'charging' | 'authenticating' | 'charged';
  readonly purchase: GiftsPurchased['data'];
  readonly purchasedAt: string;
  /** The last event of the transaction's stream. */
  readonly last: Cause;
  /** Number of gifts not issued yet, as far as the feed shows; at least 1, since the last issue closes the purchase. */
  readonly toIssue: number;
}

export interface PurchaseIntent {
  readonly do: 'charge' | 'issue';
  readonly instance: string;
  /** The charge has not been requested, as far as the feed shows. */
  readonly fresh?: true;
}

export type PurchaseTrigger =
  Exclude<PurchaseEvent, RefundEvent | ReversalEvent | SendingEvent> | GiftIssued | WorkParked | WorkRetried;

type PurchaseReaction = Reaction<PurchaseWork, PurchaseIntent>;

const NOTHING: PurchaseReaction = { state: undefined, intents: [] };

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
      return state.toIssue <= 1 ? NOTHING : { state: { ...state, toIssue: state.toIssue - 1 }, intents: [] };
    case 'WorkParked':
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

export function resumePurchase({ stage }: PurchaseWork, instance: string): readonly PurchaseIntent[] {
  return [{ do: stage === 'charged' ? 'issue' : 'charge', instance }];
}

function goOn(state: PurchaseWork, instance: string): PurchaseReaction {
  return { state, intents: resumePurchase(state, instance) };
}

function bought(purchase: GiftsPurchased['data'], instance: string, cause: Cause): PurchaseReaction {
  const state: PurchaseWork = {
    stage: 'bought',
    purchase,
    purchasedAt: cause.at,
    last: cause,
    toIssue: purchase.receivers.length,
  };
  return { state, intents: [{ do: 'charge', instance, fresh: true }] };
}
