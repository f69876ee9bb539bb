export const REFUSALS = {
  gift_not_found: 'gift not found',
  transaction_not_found: 'transaction not found',
  redemption_not_found: 'Redemption not found',
  cannot_redeem: 'Cannot redeem this gift.',
  cannot_unredeem: 'Cannot unredeem this gift.',
  cannot_claim: 'Cannot claim this gift.',
  staff_receives_no_gifts: 'Staff accounts receive no gifts.',
  gift_already_redeemed: 'gift already redeemed.',
  gift_already_claimed: 'gift already claimed.',
  gift_expired: 'gift is expired and cannot be redeemed.',
  gift_not_paid: 'gift is not paid for yet.',
  gift_cancelled: 'gift is cancelled and cannot be redeemed.',
  gift_blocked: 'gift is blocked.',
  gift_has_voucher: 'a voucher code of this gift is out.',
  gift_has_no_receiver: 'gift has no receiver.',
  notification_pending: 'a notification is still under way.',
  invalid_expiry_date: 'expiry_date must be a day to come, later than the present one and at most ten years ahead.',
  parked_work_not_found: 'Parked work not found',
  parked_work_ambiguous: 'several pieces of parked work wait here: name one by its id.',
  work_retried: 'this work has been retried.',
  work_discarded: 'this work was discarded.',
  redemption_voided: 'Redemption voided.',
  gift_not_redeemed: 'gift not redeemed.',
  invalid_location: 'Invalid location.',
  invalid_segment: 'Invalid segment.',
  voucher_not_available: 'Voucher not available.',
  invalid_product: 'Invalid product.',
  invalid_payment_reference: 'Invalid payment reference.',
  cannot_use_payment_method: 'Cannot use this payment method.',
  amount_too_small: 'Amount too small: a card is charged at least 0.30.',
  amount_too_large: 'Amount too large: a card is charged at most 999999.99.',
  receiver_not_found: 'Receiver not found.',
  invalid_send_at:
    'send_at must be a time with its zone, to come, at most 366 days ahead and no later than the gifts expire.',
  nobody_to_send_to: 'send_at needs a receiver.',
  nothing_to_send: 'nothing to send: it was sent, or never scheduled.',
  person_not_found: 'Person not found',
  number_of_user: 'this number is that of a user: erase the user.',
  erasure_not_found: 'Erasure not found',
  erasure_started: 'this erasure has started and cannot be withdrawn.',
  erasure_of_staff: 'staff and users of merchants are erased once an import has retired them.',
  another_user_required: 'this takes another user of support.',
  invalid_phone_number: 'Invalid phone number.',
  transaction_pending: 'transaction is not settled yet.',
  gift_not_in_transaction: 'gift not in this transaction.',
  gift_already_refunded: 'gift already refunded.',
  nothing_to_refund: 'nothing to refund.',
  gift_code_out: 'gift has a voucher: say voided once its code is worthless.',
  gift_disputed: "gift's payment is disputed.",
  gift_already_cancelled: 'gift is cancelled already.',
  webhook_endpoint_not_found: 'Webhook endpoint not found',
  webhook_endpoint_disabled: 'webhook endpoint is disabled.',
  too_many_webhook_endpoints: 'at most 20 webhook endpoints.',
  too_many_webhook_requests:
    'too many requests of this kind for this webhook endpoint today: docs/limits.md says how many.',
  event_not_found: 'Event not found',
  redeemed_too_often: 'this user has redeemed this gift 50 times: another user of the merchant must redeem it.',
  voided_too_often:
    'this user has cancelled 50 keys of this gift: look the key up, and reverse what it redeemed by the id of that.',
  rescheduled_too_often: 'send_at was changed 50 times: it can only be now or null.',
  supported_too_often: 'support has done this 50 times: refund the gifts, or ask those who run the service.',
  idempotency_key_reused: 'Idempotency key already used with another request.',
} as const satisfies Readonly<Record<string, string>>;

export type RefusalCode = keyof typeof REFUSALS;

/** The domain refused a command; nothing was appended. */
export class Refusal extends Error {
  override readonly name = 'Refusal';
  readonly code: RefusalCode;
  /** The refused field of the request, such as `purchase.receivers[1].phone_number`; empty: no field. */
  readonly field: string;
  constructor(code: RefusalCode, field = '') {
    super(REFUSALS[code]);
    this.code = code;
    this.field = field;
  }
}
