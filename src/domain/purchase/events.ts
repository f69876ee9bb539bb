/** Events of a purchase. Stream `transaction-{id}`. */
import type { PaymentMethod } from '../account.js';
import type { SealedText } from '../../lib/seal.js';
import type { DomainEvent } from '../decider.js';
import type { GiftOfPurchase } from '../gift/events.js';
import type { ReversalEvent } from './disputes.js';
import type { RefundEvent } from './refund.js';
import type { SendingEvent } from './sending.js';

export const transactionStream = (id: string): string => `transaction-${id}`;

/** Receiver of one gift: a phone number, by its id in the key store; a user; or neither (shared by URL). */
export interface PurchaseReceiver {
  readonly phone_id?: string;
  readonly user_id?: string;
}

/**
 * Secret: `seed` (32 random bytes, hexadecimal, from which ids are derived), `receivers[].phone_id`. Personal:
 * `message`, sealed. `sale_price` and `total` are pence; `expires_on` is the last valid day (UTC). `send_at` (ISO 8601,
 * UTC): when receivers are to be notified; absent: at once. `reference_id`: the caller's own name for the purchase,
 * which is not personal by contract (docs/api/purchases.md#buy-gifts). `replaces`: support gives the gift at no charge,
 * for `reason` (docs/support.md#replaced-gifts); `total` is 0, `client_id` the client that bought the replaced
 * one, `voided` as in a refund.
 */
export type GiftsPurchased = DomainEvent<
  'GiftsPurchased',
  {
    readonly transaction_id: string;
    readonly seed: string;
    readonly buyer_id: string;
    readonly product_id: string;
    readonly brand_id: string;
    readonly product_name: string;
    readonly sale_price: number;
    readonly total: number;
    readonly payment_reference: string;
    readonly expires_on: string;
    readonly message: SealedText;
    readonly receivers: readonly PurchaseReceiver[];
    readonly send_at?: string;
    readonly reference_id?: string;
    readonly replaces?: GiftOfPurchase & { readonly client_id?: string; readonly voided?: true };
    readonly reason?: string;
  }
>;

/**
 * The process that appended this event requests the charge next. The `at` of the first one starts the life of the
 * provider's idempotency key. `kind` and `prepaid` are recorded so that every attempt uses the same provider, even if
 * an import changes the payment method.
 */
export type ChargeStarted = DomainEvent<
  'ChargeStarted',
  {
    readonly amount: number;
    readonly payment_reference: string;
    readonly kind: PaymentMethod['kind'];
    readonly prepaid: boolean;
  }
>;

export type PaymentCharged = DomainEvent<
  'PaymentCharged',
  {
    readonly amount: number;
    readonly provider: string;
    readonly charge_id: string;
  }
>;

/** A final refusal: every gift is cancelled. `code` is the provider's. */
export type PaymentDeclined = DomainEvent<
  'PaymentDeclined',
  {
    readonly provider: string;
    readonly code: string;
  }
>;

/**
 * The buyer must authenticate before the provider takes the money. `payment_id` and `action` are the provider's. After
 * `until` (ISO 8601, UTC) payment and gifts are cancelled. The client secret is never stored, but read from the
 * provider for each answer.
 */
export type PaymentAuthenticationRequired = DomainEvent<
  'PaymentAuthenticationRequired',
  {
    readonly provider: string;
    readonly payment_id: string;
    readonly action: string;
    readonly until: string;
  }
>;

/** The buyer failed to authenticate, or the card was refused after that. `code` is the provider's. */
export type PaymentAuthenticationFailed = DomainEvent<
  'PaymentAuthenticationFailed',
  {
    readonly provider: string;
    readonly payment_id: string;
    readonly code: string;
  }
>;

export type PurchaseEvent =
  | GiftsPurchased
  | ChargeStarted
  | PaymentAuthenticationRequired
  | PaymentAuthenticationFailed
  | PaymentCharged
  | PaymentDeclined
  | RefundEvent
  | ReversalEvent
  | SendingEvent;
