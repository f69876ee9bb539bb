/**
 * Route that shows what became of a request, by its idempotency key, for callers that lost an answer
 * (docs/api/tills.md).
 */
import { idFrom } from '../../commands/commandIds.js';
import { voidOf } from '../../commands/cancelRedemption.js';
import { transactionIdOf } from '../../commands/purchaseGifts.js';
import { giftStream } from '../../domain/gift/events.js';
import { redemptionOfCommand } from '../../domain/gift/redemptionIds.js';
import { isGiftId } from '../../domain/giftIds.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { idempotencyKey, lookUpKey, type StoredAnswer } from '../pipeline/idempotency.js';
import type { Answer, EarlyCall, Route } from '../pipeline/route.js';
import {
  choiceSchema,
  dataAnswer,
  entity,
  integerSchema,
  querySchema,
  record,
  textSchema,
} from '../pipeline/schemas.js';
import { redemptionEntity } from '../../entities/gifts.js';
import { REDEEM_ROUTE, type RedemptionKeyDeps, keyedCommand } from './redemptionKeys.js';
import { redemptionsIn } from './redemptionList.js';
import { redemptionExample, redemptionSchema } from './schemas.js';
import { PURCHASE_ROUTE } from './transactions.js';

const keySchema = entity('IdempotencyKey', {
  key: textSchema(),
  gift_id: textSchema('Of a redemption.'),
  status: choiceSchema(
    ['done', 'running', 'unseen', 'void'],
    'done: it was decided; `redemption` is what was redeemed, as it is now. running: it is being decided. unseen: no request with it is known; one that is under way may still come. void: nothing was redeemed with it, and never will be.',
  ),
  answer: {
    ...record({ status: integerSchema(), body: { type: 'object', additionalProperties: true } }, ['status']),
    title: 'FirstAnswer',
    description: 'The first answer, as far as it is kept.',
  },
  redemption: redemptionSchema,
  transaction_id: textSchema('What was bought: `GET /api/v2/transactions/{id}` shows it as it is now.'),
});

const schema = { ...keySchema, required: ['key', 'status'] };

export function idempotencyKeyRoutes(deps: RedemptionKeyDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/idempotency-keys/:key',
      operation: 'getIdempotencyKey',
      summary: 'What became of a redemption or purchase, by its idempotency key',
      description:
        'Of a redemption of the gift `gift_id`, or, without it, of a purchase, that the caller sent with this key through the same client. Keys of others are unseen. What was redeemed or bought is known for good, a refusal for 24 hours.',
      tag: 'Redemptions',
      caller: 'user',
      params: { key: 'The `Idempotency-Key` that the request was sent with, percent-encoded.' },
      query: querySchema({
        gift_id: textSchema('The id or shortcode of the gift that was redeemed.', { maxLength: 64 }),
      }),
      answers: [
        dataAnswer(
          'What became of it.',
          schema,
          {
            key: 'till-7-000123',
            gift_id: redemptionExample.gift_id,
            status: 'done',
            answer: { status: 201, body: { data: redemptionExample } },
            redemption: redemptionExample,
          },
          {
            headers: {
              'Gift-Position':
                'The log position up to which the redemption or purchase was read: send it with a read that must see it. Absent for a refusal, and while nothing is known of it.',
            },
          },
        ),
      ],
      errors: ['invalid_idempotency_key'],
      async open(early) {
        const key = idempotencyKey(early.params['key']) ?? '';
        return async ({ query }) => {
          const named = query['gift_id'] as string | undefined;
          return named === undefined
            ? purchaseBy(deps, early, key)
            : redemptionBy(deps, early, deps.shortcodes.giftIdOf(named) ?? named, key);
        };
      },
    },
  ];
}

async function redemptionBy(deps: RedemptionKeyDeps, early: EarlyCall, giftId: string, key: string): Promise<Answer> {
  const commandId = keyedCommand(deps, early, REDEEM_ROUTE, { giftId }, key);
  // The record is read before the log, so that a redemption that ends in between is seen.
  const stored = await lookUpKey(deps.keys.records, commandId, deps.keys.keys);
  const history = isGiftId(giftId) ? await deps.events.read(giftStream(giftId)) : [];
  const commandPart = idFrom(commandId, 'redemption');
  const redemption = redemptionOfCommand(redemptionsIn(history), commandPart);
  const named = { key, gift_id: giftId };
  if (redemption !== undefined) {
    const { created_at } = redemption;
    const first = redemptionEntity(giftId, { ...redemption, redeemed: true, updated_at: created_at });
    const answer = { status: 201, body: { data: first } };
    const data = { ...named, status: 'done', answer, redemption: redemptionEntity(giftId, redemption) };
    return { body: { data }, position: history.at(-1)?.position };
  }
  const voided = voidOf(history, commandPart);
  if (voided !== undefined) return { body: { data: { ...named, status: 'void' } }, position: voided.position };
  return { body: { data: { ...named, ...outcomeOf(stored) } } };
}

async function purchaseBy(deps: RedemptionKeyDeps, early: EarlyCall, key: string): Promise<Answer> {
  const commandId = keyedCommand(deps, early, PURCHASE_ROUTE, {}, key);
  // The record is read before the log, so that a purchase that ends in between is seen.
  const stored = await lookUpKey(deps.keys.records, commandId, deps.keys.keys);
  const id = transactionIdOf({ commandId });
  const history = await deps.events.read(transactionStream(id));
  const outcome = outcomeOf(stored);
  if (history.length === 0) return { body: { data: { key, ...outcome } } };
  // The purchase is in the log, and its process has ended: no answer will be stored any more.
  const status = outcome.status === 'unseen' ? 'done' : outcome.status;
  const data = { key, ...outcome, status, transaction_id: id };
  return { body: { data }, position: history.at(-1)?.position };
}

interface Outcome {
  readonly status: 'done' | 'running' | 'unseen';
  readonly answer?: { readonly status: number; readonly body?: object };
}

function outcomeOf(stored: StoredAnswer | 'running' | undefined): Outcome {
  if (stored === undefined || stored === 'running') return { status: stored ?? 'unseen' };
  const { status, body } = stored;
  return { status: 'done', answer: { status, ...(body === undefined ? {} : { body: JSON.parse(body) as object }) } };
}
