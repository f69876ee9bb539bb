/** Money is pence. */
import { attempt, id, object, workerRequest, yes } from './workerRequest.js';

/**
 * A charge, made at most once for this transaction. `customer`: the card processor's customer id. `started_at` (ISO
 * 8601, UTC): when the charge was first requested; providers forget the request a day later.
 */
export interface ChargeRequest {
  readonly transaction_id: string;
  readonly amount: number;
  readonly payment_reference: string;
  readonly customer: string | null;
  readonly started_at: string;
}

/**
 * Final outcome of a charge. `amount`: the amount that the provider reports, if it does. `simulated`: no money was
 * moved.
 */
export type ChargeReply =
  | {
      readonly outcome: 'charged';
      readonly provider: string;
      readonly charge_id: string;
      readonly amount?: number;
      readonly simulated: boolean;
    }
  | { readonly outcome: 'declined'; readonly provider: string; readonly code: string; readonly simulated: boolean };

/**
 * The buyer has to authenticate before the provider takes the money. `action`: the provider's name for the method.
 * `payment_id`: the provider's id of the payment.
 */
export interface AuthenticationReply {
  readonly outcome: 'authentication';
  readonly provider: string;
  readonly payment_id: string;
  readonly action: string;
  readonly simulated: boolean;
}

/** A request for a charge's outcome. `payment_id`: null where it is not known. */
export interface ChargeLookup {
  readonly transaction_id: string;
  readonly payment_id: string | null;
}

/** `unknown`: the provider does not know the charge (any more). */
export type ChargeLookupReply = ChargeReply | AuthenticationReply | { readonly outcome: 'unknown' };

/**
 * A request to cancel a payment that waits for its buyer. The reply is `charged` where it was too late, else `declined`
 * with this `code`.
 */
export interface ChargeCancellation {
  readonly transaction_id: string;
  readonly payment_id: string;
  readonly code: string;
}

export interface PaymentActionRequest {
  readonly transaction_id: string;
  readonly payment_id: string;
}

/**
 * Secret: `client_secret`, which is shown to the buyer and never stored. `waiting`: the payment still waits for its
 * buyer. `unknown`: the provider does not know the payment (any more).
 */
export type PaymentActionReply =
  | { readonly outcome: 'action'; readonly client_secret: string; readonly waiting: boolean }
  | { readonly outcome: 'unknown' };

export interface PaymentSearch {
  readonly payment_id: string;
}

/** `unknown`: the payment belongs to no transaction of ours. */
export type PaymentSearchReply =
  { readonly outcome: 'found'; readonly transaction_id: string } | { readonly outcome: 'unknown' };

/**
 * A refund, made at most once for this refund and attempt. A further attempt follows only after the one before was
 * refused, or certainly never reached the provider. `amount` is at least 1. `provider`, `charge_id`: from the charge's
 * reply. `started_at` (ISO 8601, UTC): when this attempt was first requested.
 */
export interface RefundRequest {
  readonly refund_id: string;
  /** Number of the attempt, counted from 1. */
  readonly attempt: number;
  readonly transaction_id: string;
  readonly amount: number;
  readonly provider: string;
  readonly charge_id: string;
  readonly payment_reference: string;
  readonly started_at: string;
}

/** Final outcome of this attempt. `refund_ref` is the provider's id of the refund. `simulated`: no money was moved. */
export type RefundReply =
  | {
      readonly outcome: 'refunded';
      readonly provider: string;
      readonly refund_ref: string;
      readonly simulated: boolean;
    }
  | { readonly outcome: 'refused'; readonly provider: string; readonly code: string; readonly simulated: boolean };

export interface RefundLookup {
  readonly refund_id: string;
  readonly attempt: number;
  readonly provider: string;
  readonly charge_id: string;
  readonly started_at?: string;
}

/**
 * `never`: the provider never received this attempt. `others`: pence of the charge that external refunds returned since
 * the attempt was first requested; absent: none.
 */
export type RefundLookupReply = RefundReply | { readonly outcome: 'never'; readonly others?: number };

const charged = { outcome: { const: 'charged' }, provider: id, charge_id: id, simulated: yes };
const declined = { outcome: { const: 'declined' }, provider: id, code: id, simulated: yes };
const authentication = {
  outcome: { const: 'authentication' },
  provider: id,
  payment_id: id,
  action: id,
  simulated: yes,
};
const refunded = { outcome: { const: 'refunded' }, provider: id, refund_ref: id, simulated: yes };
const refused = { outcome: { const: 'refused' }, provider: id, code: id, simulated: yes };
const unknown = { outcome: { const: 'unknown' } };
const pence = { type: 'integer', minimum: 0 };
const QUEUE = 'payments';

export const PAYMENT_REQUESTS = {
  charge: workerRequest<ChargeRequest, ChargeReply | AuthenticationReply>(
    'payments.charge',
    QUEUE,
    object({
      transaction_id: id,
      amount: pence,
      payment_reference: id,
      customer: { type: ['string', 'null'] },
      started_at: id,
    }),
    [charged, declined, authentication],
    { amount: pence },
  ),
  lookUpCharge: workerRequest<ChargeLookup, ChargeLookupReply>(
    'payments.lookup',
    QUEUE,
    object({ transaction_id: id, payment_id: { ...id, type: ['string', 'null'] } }),
    [charged, declined, authentication, unknown],
    { amount: pence },
  ),
  cancelCharge: workerRequest<ChargeCancellation, ChargeReply>(
    'payments.cancel',
    QUEUE,
    object({ transaction_id: id, payment_id: id, code: id }),
    [charged, declined],
    { amount: pence },
  ),
  paymentAction: workerRequest<PaymentActionRequest, PaymentActionReply>(
    'payments.action',
    QUEUE,
    object({ transaction_id: id, payment_id: id }),
    [{ outcome: { const: 'action' }, client_secret: id, waiting: yes }, unknown],
  ),
  findPayment: workerRequest<PaymentSearch, PaymentSearchReply>('payments.find', QUEUE, object({ payment_id: id }), [
    { outcome: { const: 'found' }, transaction_id: id },
    unknown,
  ]),
  refund: workerRequest<RefundRequest, RefundReply>(
    'payments.refund',
    QUEUE,
    object({
      refund_id: id,
      attempt,
      transaction_id: id,
      amount: { type: 'integer', minimum: 1 },
      provider: id,
      charge_id: id,
      payment_reference: id,
      started_at: id,
    }),
    [refunded, refused],
  ),
  lookUpRefund: workerRequest<RefundLookup, RefundLookupReply>(
    'payments.lookupRefund',
    QUEUE,
    object({ refund_id: id, attempt, provider: id, charge_id: id }, { started_at: id }),
    [refunded, refused, { outcome: { const: 'never' } }],
    { others: pence },
  ),
};
