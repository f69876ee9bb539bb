/** Who takes the money: Stripe, or the simulated provider. */
import type {
  AuthenticationReply,
  ChargeCancellation,
  ChargeLookup,
  ChargeLookupReply,
  ChargeReply,
  ChargeRequest,
  PaymentActionReply,
  PaymentActionRequest,
  PaymentSearch,
  PaymentSearchReply,
  RefundLookup,
  RefundLookupReply,
  RefundReply,
  RefundRequest,
} from '../../messages/payments.js';

export interface PaymentProvider {
  /** Charges, or repeats the answer for this transaction. @throws Error: ask again */
  charge(request: ChargeRequest): Promise<ChargeReply | AuthenticationReply>;
  /** The present outcome of a transaction. A payment that can't succeed any more is cancelled. */
  lookUp(request: ChargeLookup): Promise<ChargeLookupReply>;
  /** Cancels a payment that waits for its buyer, unless it has succeeded. */
  cancel(request: ChargeCancellation): Promise<ChargeReply>;
  /** What the buyer needs to authenticate. */
  action(request: PaymentActionRequest): Promise<PaymentActionReply>;
  /** The transaction of a payment. */
  find(request: PaymentSearch): Promise<PaymentSearchReply>;
  /** Gives money back, or repeats the answer for this attempt. @throws Error: ask again */
  refund(request: RefundRequest): Promise<RefundReply>;
  /** The outcome of an attempt at a refund. */
  lookUpRefund(request: RefundLookup): Promise<RefundLookupReply>;
}
