/** A purchase and its payment. Stream `transaction-{id}`. */
import type { PaymentMethod } from '../account.js';
import type { DomainEvent } from '../decider.js';
import type { ReversalEvent } from '../disputes.js';
import type { RefundEvent } from '../refund.js';

export const transactionStream = (id: string): string => `transaction-${id}`;

/** A receiver: a phone number (E.164, personal; with its HMAC), a user, or neither (shared by URL). */
export interface PurchaseReceiver {
  readonly phone_number?: string;
  readonly phone_hash?: string;
  readonly user_id?: string;
}

/**
 * All gifts of one purchase. Secret: `seed` (32 random bytes, hexadecimal, from which ids come),
 * `receivers[].phone_hash`. Personal: `receivers[].phone_number`, `message`. `sale_price` and `total` are pence;
 * `expires_on` is the last valid day (UTC).
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
    readonly message: string;
    readonly receivers: readonly PurchaseReceiver[];
  }
>;

/**
 * The charge is about to be asked for, by the process that wrote this. `at` of the first one is when the provider's
 * idempotency key started to count. `kind` and `prepaid` are the payment method's at that time: the same provider is
 * asked again, whatever an import makes of the method.
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

/** The provider took the money. `charge_id` is the provider's. */
export type PaymentCharged = DomainEvent<
  'PaymentCharged',
  {
    readonly amount: number;
    readonly provider: string;
    readonly charge_id: string;
  }
>;

/** The provider refused for good; every gift of the purchase is cancelled. `code` is the provider's decline code. */
export type PaymentDeclined = DomainEvent<
  'PaymentDeclined',
  {
    readonly provider: string;
    readonly code: string;
  }
>;

/**
 * The provider takes the money only once the buyer has authenticated. `payment_id` is the provider's name of the
 * payment, `action` its word for what the buyer has to do; after `until` (ISO 8601, UTC) payment and gifts are
 * cancelled. The secret for it is asked of the provider whenever it is shown, and never stored.
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

/** Authentication failed, or the card was refused after it: the payment is to be cancelled. `code` is the provider's. */
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
  | ReversalEvent;
