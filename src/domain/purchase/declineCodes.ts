/** What a buyer may be told of a declined payment (docs/api/purchases.md#decline-codes). */

/**
 * The codes that a caller is told, as the card processor names them, and what the buyer can do. Any other is told as
 * `generic_decline`: also those that say that the card was reported, which whoever holds it must not learn.
 */
export const DECLINE_CODES = {
  generic_decline: 'pay with another card, or ask the bank',
  insufficient_funds: 'pay with another card or wallet: too little money is there',
  expired_card: 'pay with another card: this one has expired',
  incorrect_cvc: 'enter the card again: its CVC is wrong',
  incorrect_number: 'enter the card again: its number is wrong',
  card_velocity_exceeded: 'pay with another card, or later: it was used too often or for too much',
  card_not_supported: 'pay with another card: this one can’t be used for such a purchase',
  currency_not_supported: 'pay with another card: this one does not pay in pounds',
  authentication_required: 'buy again and prove the identity to the bank within 15 minutes',
  processing_error: 'buy again, in a while',
  try_again_later: 'buy again, in a while',
} as const satisfies Readonly<Record<string, string>>;

type DeclineCode = keyof typeof DECLINE_CODES;

/** Codes of the card processor that mean the same to a buyer. */
const SAME: Readonly<Record<string, DeclineCode>> = {
  invalid_cvc: 'incorrect_cvc',
  invalid_number: 'incorrect_number',
  withdrawal_count_limit_exceeded: 'card_velocity_exceeded',
  issuer_not_available: 'try_again_later',
  reenter_transaction: 'try_again_later',
  payment_intent_authentication_failure: 'authentication_required',
};

/** The code to tell the buyer. @param code the provider's; `undefined`: none is known */
export function declineCodeOf(code = 'generic_decline'): DeclineCode {
  if (Object.hasOwn(DECLINE_CODES, code)) return code as DeclineCode;
  return Object.hasOwn(SAME, code) ? (SAME[code] as DeclineCode) : 'generic_decline';
}
