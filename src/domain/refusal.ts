/** What a decision may refuse. The API's error table gives each its status and message. */
export type RefusalCode =
  | 'gift_not_found'
  | 'transaction_not_found'
  | 'redemption_not_found'
  | 'cannot_redeem'
  | 'cannot_unredeem'
  | 'cannot_claim'
  | 'gift_already_redeemed'
  | 'gift_already_claimed'
  | 'gift_expired'
  | 'gift_not_paid'
  | 'gift_cancelled'
  | 'gift_blocked'
  | 'gift_has_voucher'
  | 'gift_has_no_receiver'
  | 'gift_being_told'
  | 'invalid_expiry_date'
  | 'parked_work_not_found'
  | 'parked_work_ambiguous'
  | 'work_retried'
  | 'work_discarded'
  | 'gift_not_redeemed'
  | 'invalid_location'
  | 'invalid_segment'
  | 'voucher_not_available'
  | 'invalid_product'
  | 'invalid_payment_reference'
  | 'cannot_use_payment_method'
  | 'amount_too_small'
  | 'amount_too_large'
  | 'receiver_not_found'
  | 'invalid_phone_number'
  | 'transaction_pending'
  | 'gift_not_in_transaction'
  | 'gift_already_refunded'
  | 'nothing_to_refund'
  | 'gift_code_out'
  | 'gift_disputed'
  | 'gift_already_cancelled'
  | 'idempotency_key_reused';

/** A command was understood and refused: nothing was appended. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  /**
   * The field of the request that it is about, `purchase.receivers[1].phone_number`; empty: the request as a whole, or
   * the state.
   */
  readonly field: string;
  constructor(code: RefusalCode, field = '') {
    super(code);
    this.code = code;
    this.field = field;
  }
}
