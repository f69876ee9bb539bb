/** What takes the money: Stripe, or the simulated one. */
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

/** Answers to charges and refunds. */
export interface PaymentProvider {
  /**
   * Charges, or answers what was answered for this transaction before. @throws Error when the provider is in trouble:
   * ask again.
   */
  charge(request: ChargeRequest): Promise<ChargeReply | AuthenticationReply>;
  /**
   * What was answered for a transaction, or has become of it since. A payment that can't succeed any more is cancelled.
   */
  lookUp(request: ChargeLookup): Promise<ChargeLookupReply>;
  /** Cancels a payment that waits for its buyer, unless it has succeeded. */
  cancel(request: ChargeCancellation): Promise<ChargeReply>;
  /** What its buyer needs to prove who they are. */
  action(request: PaymentActionRequest): Promise<PaymentActionReply>;
  /** The transaction of a payment. */
  find(request: PaymentSearch): Promise<PaymentSearchReply>;
  /**
   * Gives money back, or answers what was answered for this attempt before. @throws Error when the provider is in
   * trouble: ask again.
   */
  refund(request: RefundRequest): Promise<RefundReply>;
  /** What was answered for an attempt at a refund. */
  lookUpRefund(request: RefundLookup): Promise<RefundLookupReply>;
}
