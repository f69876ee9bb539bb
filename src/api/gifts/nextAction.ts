/** 402 `Payment needs authentication.`, with the data for the buyer's app. */
import type { PaymentQuestions } from '../../commands/paymentAction.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import { ERRORS, HttpError } from '../pipeline/errors.js';
import type { Route, Schema } from '../pipeline/route.js';

const schema: Schema = {
  title: 'PaymentNeedsAuthentication',
  type: 'object',
  additionalProperties: false,
  required: ['error', 'next_action'],
  properties: {
    error: { type: 'string', const: ERRORS.payment_needs_authentication[1] },
    next_action: {
      type: 'object',
      additionalProperties: false,
      required: ['type', 'client_secret'],
      properties: {
        type: {
          type: 'string',
          description: 'The card processor’s word for what the buyer has to do, such as `use_stripe_sdk`.',
        },
        client_secret: {
          type: 'string',
          description:
            'What the card processor’s library in the buyer’s app goes on with. A secret of this buyer: not to be kept or logged.',
        },
      },
    },
  },
};

export const NEXT_ACTION_BODIES: NonNullable<Route['errorBodies']> = {
  payment_needs_authentication: {
    schema,
    example: { next_action: { type: 'use_stripe_sdk', client_secret: 'pi_3OyAbCdEfGhIjKlM_secret_nOpQrStUvWxYz' } },
  },
};

export interface NextActionRequest {
  readonly questions: PaymentQuestions;
  readonly transactionId: string;
  readonly authentication: NonNullable<TransactionDocument['authentication']>;
  readonly headers: Readonly<Record<string, string>>;
  /** True: only while the provider still waits for the buyer. */
  readonly asThingsAre: boolean;
}

/** `undefined`: the provider does not wait for the buyer. @throws UnavailableError without the provider */
export async function needsAuthentication({
  questions,
  transactionId,
  authentication,
  headers,
  asThingsAre,
}: NextActionRequest): Promise<HttpError | undefined> {
  const found = await questions.action(transactionId, authentication.payment_id);
  if (found === undefined || (asThingsAre && !found.waiting)) return undefined;
  return new HttpError('payment_needs_authentication', {
    headers,
    more: { next_action: { type: authentication.action, client_secret: found.clientSecret } },
  });
}
