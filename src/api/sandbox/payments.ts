/** Routes for payments in a sandbox (docs/api/sandbox.md#cards, docs/api/sandbox.md#authentication). */
import { authenticateBuyer, giveCard, type SandboxPaymentDeps } from '../../ops/sandbox/sandboxPayments.js';
import type { TransactionDocument } from '../../projections/transactions.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { HttpError } from '../pipeline/errors.js';
import { randomCommandId } from '../pipeline/idempotency.js';
import type { Route } from '../pipeline/route.js';
import { choiceSchema, dataAnswer, entity, textSchema } from '../pipeline/schemas.js';

interface SandboxPaymentRouteDeps extends SandboxPaymentDeps {
  readonly transactions: Pick<ReadModel<TransactionDocument>, 'get'>;
  /** The present, ISO 8601, UTC. */
  now(): string;
}

const OUTCOMES = { succeeded: true, failed: false } as const;

const TRANSACTION_EXAMPLE = '0f7d3a61c5b84e2f9a6d1c3e5b7f9024';

const cardSchema = entity('SandboxCard', { reference: textSchema() });
const authenticationSchema = entity('SandboxAuthentication', {
  transaction_id: textSchema(),
  outcome: choiceSchema(
    ['charged', 'declined'],
    'The first outcome, which stands: some cards are declined though their buyer authenticates.',
  ),
});

export function sandboxPaymentRoutes(deps: SandboxPaymentRouteDeps): Route[] {
  return [
    {
      method: 'POST',
      path: '/sandbox/payment-methods',
      operation: 'addSandboxCard',
      tag: 'Sandbox',
      caller: 'user',
      noStore: true,
      summary: 'Get a test card',
      description: 'Gives the user one of the test cards, as an import by the operator would.',
      body: entity('SandboxCardRequest', {
        reference: textSchema('`pm_card_…`, or the 16 digits of one of Stripe’s test cards.', {
          pattern: '^(pm_card_[A-Za-z0-9_]{1,64}|[0-9]{16})$',
          'x-message': 'reference must be a test card, such as pm_card_visa.',
        }),
      }),
      bodyExample: { reference: 'pm_card_authenticationRequired' },
      answers: [dataAnswer('The user may pay with it.', cardSchema, { reference: 'pm_card_authenticationRequired' })],
      async open(early) {
        const { id } = userOf(early);
        const context = contextOf(early, deps.now(), randomCommandId());
        return async ({ body }) => {
          const { reference } = body as { readonly reference: string };
          const position = await giveCard(deps.events, id, reference, context);
          return { body: { data: { reference } }, position };
        };
      },
    },
    {
      method: 'POST',
      path: '/sandbox/transactions/:transactionId/authentication',
      operation: 'authenticateInSandbox',
      tag: 'Sandbox',
      caller: 'user',
      noStore: true,
      summary: 'Authenticate a buyer',
      description:
        'For the buyer of a purchase that was answered 402 `Payment needs authentication.`: does what the bank’s page does in the card processor’s library. The first outcome stands.',
      params: { transactionId: 'The transaction’s id.' },
      body: entity('SandboxAuthenticationRequest', { outcome: choiceSchema(Object.keys(OUTCOMES)) }),
      bodyExample: { outcome: 'succeeded' },
      answers: [
        dataAnswer('What became of the payment.', authenticationSchema, {
          transaction_id: TRANSACTION_EXAMPLE,
          outcome: 'charged',
        }),
      ],
      errors: ['transaction_not_found', 'nothing_to_authenticate'],
      async open(early) {
        const id = early.params['transactionId'] ?? '';
        const user = userOf(early);
        const context = contextOf(early, deps.now(), randomCommandId());
        const transaction = await deps.transactions.get(id, early.position);
        if (transaction?.buyer_id !== user.id) throw new HttpError('transaction_not_found');
        return async ({ body }) => {
          const { outcome } = body as { readonly outcome: keyof typeof OUTCOMES };
          const became = await authenticateBuyer(deps, id, OUTCOMES[outcome], context);
          return { body: { data: { transaction_id: id, outcome: became } } };
        };
      },
    },
  ];
}
