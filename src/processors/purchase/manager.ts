/**
 * The purchase process: charge what was bought, then issue its gifts (decisions 3). Pure: events come in, what to do
 * comes out.
 */
import type { NotificationFailed, NotificationSent } from '../../domain/notification.js';
import type { WorkParked } from '../../domain/parked.js';
import type {
  ChargeStarted,
  GiftsPurchased,
  PaymentAuthenticationFailed,
  PaymentAuthenticationRequired,
  PaymentCharged,
  PaymentDeclined,
  PurchaseReceiver,
} from '../../domain/purchase.js';
import type { GiftIssued } from '../../domain/gift.js';
import type { Cause } from '../runner/cause.js';

/**
 * A purchase with something left to do. `bought`: nobody has asked for the charge; `charging`: asked, without an
 * answer; `authenticating`: waiting for its buyer; `charged`: gifts are being issued and told.
 */
export interface PurchaseWork {
  readonly stage: 'bought' | 'charging' | 'authenticating' | 'charged';
  readonly purchase: GiftsPurchased['data'];
  readonly purchasedAt: string;
  /** The last event of the transaction's stream: what the next one follows. */
  readonly last: Cause;
  /** Gifts whose issue has not been cause. */
  readonly toIssue: number;
  /** Receivers with an address who have been neither told nor given up. */
  readonly toTell: number;
}

/** What is to be done for a purchase. */
export type PurchaseIntent = { readonly do: 'charge' | 'issue'; readonly transactionId: string };

/**
 * The events that move a purchase. Those of its notifications count too: it is kept while its receivers' numbers are
 * needed.
 */
export type PurchaseTrigger =
  | GiftsPurchased
  | ChargeStarted
  | PaymentAuthenticationRequired
  | PaymentAuthenticationFailed
  | PaymentCharged
  | PaymentDeclined
  | GiftIssued
  | NotificationSent
  | NotificationFailed
  | WorkParked;

/** A purchase after one more event; `work` undefined: there is nothing left to do. */
export interface PurchaseReaction {
  readonly work: PurchaseWork | undefined;
  readonly intents: readonly PurchaseIntent[];
}

/** Whether a receiver is to be told at all: a gift to be shared by URL tells nobody. */
function isToBeTold(receiver: PurchaseReceiver): boolean {
  return receiver.phone_number !== undefined || receiver.user_id !== undefined;
}

/** The reaction. An event of a purchase that is not open changes nothing. */
export function reactToPurchase(
  work: PurchaseWork | undefined,
  event: PurchaseTrigger,
  cause: Cause,
): PurchaseReaction {
  if (event.type === 'GiftsPurchased') return bought(event.data, cause);
  if (work === undefined) return NOTHING;
  switch (event.type) {
    case 'ChargeStarted':
      // Who wrote it asks; another one takes it up only when it resumes.
      return { work: { ...work, stage: 'charging', last: cause }, intents: [] };
    case 'PaymentAuthenticationRequired':
      // Who wrote it waits, and looks now and then.
      return { work: { ...work, stage: 'authenticating', last: cause }, intents: [] };
    case 'PaymentAuthenticationFailed': {
      const failed: PurchaseWork = { ...work, last: cause };
      return { work: failed, intents: resumePurchase(failed) };
    }
    case 'PaymentCharged': {
      const charged: PurchaseWork = { ...work, stage: 'charged', last: cause };
      return { work: charged, intents: resumePurchase(charged) };
    }
    case 'PaymentDeclined':
      return NOTHING;
    case 'GiftIssued':
      return left({ ...work, toIssue: work.toIssue - 1 });
    case 'NotificationSent':
    case 'NotificationFailed':
      return left({ ...work, toTell: work.toTell - 1 });
    case 'WorkParked':
      // Parked is the purchase itself, or only the telling of one of its receivers.
      return event.data.entity === work.purchase.transaction_id ? NOTHING : left({ ...work, toTell: work.toTell - 1 });
    default:
      return (event satisfies never, NOTHING);
  }
}

/** What to do for a purchase as it stands, by who takes it up anew. */
export function resumePurchase(work: PurchaseWork): readonly PurchaseIntent[] {
  const transactionId = work.purchase.transaction_id;
  if (work.stage !== 'charged') return [{ do: 'charge', transactionId }];
  return work.toIssue > 0 ? [{ do: 'issue', transactionId }] : [];
}

const NOTHING: PurchaseReaction = { work: undefined, intents: [] };

function bought(purchase: GiftsPurchased['data'], cause: Cause): PurchaseReaction {
  const toTell = purchase.receivers.reduce((count, receiver) => (isToBeTold(receiver) ? count + 1 : count), 0);
  const work: PurchaseWork = {
    stage: 'bought',
    purchase,
    purchasedAt: cause.at,
    last: cause,
    toIssue: purchase.receivers.length,
    toTell,
  };
  return { work, intents: resumePurchase(work) };
}

function left(work: PurchaseWork): PurchaseReaction {
  return work.toIssue <= 0 && work.toTell <= 0 ? NOTHING : { work, intents: [] };
}
