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
  /** Charges a transaction once; a repeated request gets the same answer. @throws Error to be retried */
  charge(request: ChargeRequest): Promise<ChargeReply | AuthenticationReply>;
  /** Looks a charge up. A payment that can no longer succeed is cancelled. */
  lookUp(request: ChargeLookup): Promise<ChargeLookupReply>;
  /** Cancels a payment that waits for its buyer, unless it has succeeded. */
  cancel(request: ChargeCancellation): Promise<ChargeReply>;
  action(request: PaymentActionRequest): Promise<PaymentActionReply>;
  find(request: PaymentSearch): Promise<PaymentSearchReply>;
  /** Refunds once per attempt; a repeated request gets the same answer. @throws Error to be retried */
  refund(request: RefundRequest): Promise<RefundReply>;
  lookUpRefund(request: RefundLookup): Promise<RefundLookupReply>;
}
