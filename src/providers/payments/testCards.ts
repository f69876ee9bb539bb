/** Stripe's test cards and payment methods: https://docs.stripe.com/testing */

const DECLINED_CARDS: Readonly<Record<string, string>> = {
  '4000000000000002': 'generic_decline',
  '4000000000009995': 'insufficient_funds',
  '4000000000009987': 'lost_card',
  '4000000000009979': 'stolen_card',
  '4000000000000069': 'expired_card',
  '4000000000000127': 'incorrect_cvc',
  '4000000000000119': 'processing_error',
  '4000000000006975': 'card_velocity_exceeded',
};

const DECLINED_METHODS: Readonly<Record<string, string>> = {
  chargeDeclined: 'generic_decline',
  chargeDeclinedInsufficientFunds: 'insufficient_funds',
  chargeDeclinedLostCard: 'lost_card',
  chargeDeclinedStolenCard: 'stolen_card',
  chargeDeclinedExpiredCard: 'expired_card',
  chargeDeclinedIncorrectCvc: 'incorrect_cvc',
  chargeDeclinedProcessingError: 'processing_error',
  chargeDeclinedVelocityLimitExceeded: 'card_velocity_exceeded',
  // Not a method of Stripe's: it stands for a card that was detached from its customer.
  detached: 'invalid_request_error',
};

/** Decline codes of cards after authentication; null: the card is charged. */
const AUTHENTICATED_CARDS: Readonly<Record<string, string | null>> = {
  '4000002500003155': null,
  '4000002760003184': null,
  '4000003800000446': null,
  '4000000000003220': null,
  '4000000000003063': null,
  '4000008260003178': 'insufficient_funds',
  '4000008400001629': 'generic_decline',
  '4000008400001280': 'processing_error',
};

const AUTHENTICATED_METHODS: Readonly<Record<string, string | null>> = {
  authenticationRequired: null,
  authenticationRequiredOnSetup: null,
  authenticationRequiredSetupForOffSession: null,
  threeDSecure2Required: null,
  threeDSecureRequired: null,
  authenticationRequiredChargeDeclinedInsufficientFunds: 'insufficient_funds',
  threeDSecureRequiredChargeDeclined: 'generic_decline',
  threeDSecureRequiredProcessingError: 'processing_error',
};

function behaviourOf<T>(
  reference: string,
  cards: Readonly<Record<string, T>>,
  methods: Readonly<Record<string, T>>,
): T | undefined {
  const card = reference.replaceAll(/[ -]/g, '');
  if (Object.hasOwn(cards, card)) return cards[card];
  const method = /^(?:pm_card|tok)_(?:visa_)?(\w+)$/.exec(reference)?.[1] ?? '';
  return Object.hasOwn(methods, method) ? methods[method] : undefined;
}

/** Decline code of a card or payment method; `undefined`: it is charged. */
export function declineCodeOf(reference: string): string | undefined {
  return behaviourOf(reference, DECLINED_CARDS, DECLINED_METHODS);
}

export function needsAuthentication(reference: string): boolean {
  return behaviourOf(reference, AUTHENTICATED_CARDS, AUTHENTICATED_METHODS) !== undefined;
}

/** Decline code after the buyer's authentication; `undefined`: it is charged. */
export function afterAuthentication(reference: string): string | undefined {
  return behaviourOf(reference, AUTHENTICATED_CARDS, AUTHENTICATED_METHODS) ?? undefined;
}
