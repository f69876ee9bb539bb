/** The answer 402 `Payment needs authentication.`, with the data for the buyer's app. */
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import { ERRORS } from '../../domain/errors.js';
import { HttpError } from '../pipeline/errors.js';
import type { Route } from '../pipeline/route.js';
import { record, textSchema } from '../pipeline/schemas.js';

const nextAction = record({
  type: textSchema('The card processor’s word for what the buyer has to do, such as `use_stripe_sdk`.'),
  client_secret: textSchema(
    'For the card processor’s library in the buyer’s app. A secret of this buyer: neither store nor log it.',
  ),
});

export const NEXT_ACTION_FIELDS: NonNullable<Route['errorFields']> = {
  payment_needs_authentication: {
    properties: {
      next_action: { ...nextAction, description: `Where the error is \`${ERRORS.payment_needs_authentication[1]}\`` },
    },
    example: { next_action: { type: 'use_stripe_sdk', client_secret: 'pi_3OyAbCdEfGhIjKlM_secret_nOpQrStUvWxYz' } },
  },
};

interface NextActionRequest {
  readonly questions: PaymentQuestions;
  readonly transactionId: string;
  readonly authentication: NonNullable<TransactionDocument['authentication']>;
  readonly headers: Readonly<Record<string, string>>;
  readonly onlyWhileWaiting: boolean;
}

/**
 * The error to answer with; `undefined`: the provider does not wait for the buyer.
 * @throws UnavailableError where the provider can't be reached
 */
export async function needsAuthentication({
  questions,
  transactionId,
  authentication,
  headers,
  onlyWhileWaiting,
}: NextActionRequest): Promise<HttpError | undefined> {
  const found = await questions.action(transactionId, authentication.payment_id);
  if (found === undefined || (onlyWhileWaiting && !found.waiting)) return undefined;
  return new HttpError('payment_needs_authentication', {
    headers,
    more: { next_action: { type: authentication.action, client_secret: found.clientSecret } },
  });
}
