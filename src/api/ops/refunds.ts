import { hasEnded, refundView } from '../../ops/refunds/refundView.js';
import { listRefunds, refundGifts } from '../../commands/refundGifts.js';
import { Refusal } from '../../domain/refusal.js';
import {
  choiceSchema,
  countSchema,
  dataAnswer,
  entity,
  flagSchema,
  listSchema,
  orNull,
  record,
  textSchema,
} from '../pipeline/schemas.js';
import type { OpsDeps } from './deps.js';
import { type OpsRoute, reasonProperty, supportContextOf, STAFF } from './frame.js';

/** How long an answer waits for a refund, ms: longer than most take. */
const WAIT_MS = 5_000;
const MAX_GIFTS = 10_000;

const giftIdList = listSchema(textSchema());

const refundSchema = entity('Refund', {
  id: textSchema(),
  transaction_id: textSchema(),
  status: choiceSchema(
    ['requested', 'started', 'refunded', 'refused', 'nothing'],
    '`requested`: its gifts are being cancelled; `started`: the money is being refunded; `refunded`: it has been; `refused`: the provider refused, and the refund is parked; `nothing`: no gift could be cancelled.',
  ),
  amount: countSchema('Pence: what the cancelled gifts cost; 0 before they are.'),
  gift_ids: { ...giftIdList, description: 'The cancelled gifts; while `requested`, the requested ones.' },
  kept: {
    type: 'object',
    additionalProperties: false,
    description: 'The unchanged gifts: redeemed; with an issued code; with a disputed payment; cancelled before.',
    properties: { redeemed: giftIdList, code_out: giftIdList, disputed: giftIdList, cancelled: giftIdList },
  },
  provider: orNull(textSchema('The provider of the payment, which also refunds it.')),
  provider_ref: orNull(textSchema("The provider's id of the refund.")),
  code: orNull(textSchema('Why the provider refuses.')),
});

const example = {
  id: '9b1deb4d3b7d4bad9bdd2b0d7b3dcb6d',
  transaction_id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  status: 'refunded',
  amount: 350,
  gift_ids: ['5f2c9d6a1b7e4c80d3a1'],
  kept: { redeemed: ['0c4f1a9e7b2d8c6f5a30'] },
  provider: 'stripe',
  provider_ref: 're_3MmlLrLkdIwHu7ix0uke3Ezy',
  code: null,
};

const params = { transactionId: 'The transaction.' };

export function refundRoutes({ engines: { events }, gifts }: OpsDeps): OpsRoute[] {
  return [
    {
      method: 'POST',
      path: '/ops/transactions/:transactionId/refund',
      operation: 'refundGifts',
      outward: true,
      summary: 'Cancel and refund gifts of a purchase',
      description:
        'Cancels gifts that are not redeemed and have no voucher, then refunds exactly their share to the original payment. A gift with a voucher is refunded only with `voided`, which confirms that its code has been made worthless. ' +
        "Expired gifts are refunded, too. Without `gift_ids`: every gift without a refund; those that can't be cancelled stay unchanged. " +
        'An accepted refund is carried out whatever fails in between. The answer is 202 where it takes longer than 5 s.',
      tag: 'Refunds',
      roles: ['support'],
      params,
      body: record(
        {
          gift_ids: {
            type: 'array',
            minItems: 1,
            maxItems: MAX_GIFTS,
            items: { type: 'string', maxLength: 64 },
            description: 'Ids or shortcodes.',
          },
          voided: flagSchema('The issued codes have been made worthless.', { default: false }),
          reason: reasonProperty,
        },
        ['reason'],
      ),
      bodyExample: { gift_ids: ['5f2c9d6a1b7e4c80d3a1'], reason: 'bought twice by mistake' },
      answers: [
        dataAnswer('It has ended: `refunded`, `refused` or `nothing`.', refundSchema, example),
        dataAnswer(
          'It is under way.',
          refundSchema,
          { ...example, status: 'started', provider_ref: null },
          { status: 202 },
        ),
      ],
      errors: [
        'transaction_not_found',
        'transaction_pending',
        'gift_not_in_transaction',
        'gift_already_refunded',
        'gift_already_redeemed',
        'gift_code_out',
        'gift_disputed',
        'gift_already_cancelled',
        'gift_is_replacement',
        'nothing_to_refund',
        'supported_too_often',
      ],
      exists: async ({ params: { transactionId = '' } }) => listRefunds(events, transactionId),
      async handle(call) {
        const transactionId = call.params['transactionId'] ?? '';
        const named = call.body['gift_ids'] as readonly string[] | undefined;
        const giftIds = named?.map((identifier, index) => {
          const id = gifts.shortcodes.giftIdOf(identifier);
          if (id === undefined) throw new Refusal('gift_not_in_transaction', `gift_ids[${index}]`);
          return id;
        });
        const order = {
          transactionId,
          ...(giftIds === undefined ? {} : { giftIds }),
          voided: call.body['voided'] === true,
          reason: (call.body['reason'] as string).trim(),
        };
        const { refund, position, replayed } = await refundGifts(events, supportContextOf(call, gifts.now()), order, {
          ms: WAIT_MS,
        });
        return {
          status: hasEnded(refund) ? 200 : 202,
          body: { data: refundView(transactionId, refund) },
          replayed,
          shown: 1,
          ...(giftIds === undefined ? {} : { recorded: { gift_ids: giftIds } }),
          position,
        };
      },
    },
    {
      method: 'GET',
      path: '/ops/transactions/:transactionId/refunds',
      operation: 'listRefunds',
      summary: "A purchase's refunds",
      tag: 'Refunds',
      roles: STAFF,
      params,
      answers: [dataAnswer('The refunds, in order of time.', listSchema(refundSchema), [example])],
      errors: ['transaction_not_found'],
      async handle({ params: { transactionId = '' } }) {
        const refunds = await listRefunds(events, transactionId);
        return {
          body: { data: refunds.map((refund) => refundView(transactionId, refund)) },
          shown: refunds.length,
        };
      },
    },
  ];
}
