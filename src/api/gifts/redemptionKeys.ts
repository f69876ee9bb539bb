/** Redemptions by their idempotency keys, for tills that lost an answer (docs/tills.md). */
import { cancelRedemption, voidOf } from '../../commands/cancelRedemption.js';
import { idFrom } from '../../commands/commandIds.js';
import { hasRun, loadGift } from '../../commands/loadGift.js';
import { mayUnredeem } from '../../domain/gift/decisions.js';
import { giftStream } from '../../domain/gift/events.js';
import { giftIdOf } from '../../domain/giftIds.js';
import { HttpError } from '../pipeline/errors.js';
import type { PipelineDeps } from '../pipeline/exchange.js';
import { idempotencyKey, keyedCommandId, keyRoute, lookUpKey } from '../pipeline/idempotency.js';
import type { Answer, EarlyCall, Handler, Route } from '../pipeline/route.js';
import { dataSchema, entity, record } from '../representation/schemas.js';
import { contextOf, type GiftRouteDeps, modelsToWaitFor, userOf } from './deps.js';
import { redemptionEntity } from './entities.js';
import { redemptionsIn } from './redemptionList.js';
import { redemptionExample, redemptionSchema } from './schemas.js';

export interface RedemptionKeyDeps extends GiftRouteDeps {
  readonly keys: Pick<PipelineDeps, 'hash' | 'keys' | 'records'>;
}

export const REDEEM_ROUTE = { method: 'POST', path: '/api/v2/gifts/:giftId/redemptions' } as const;

const BY_KEY = 'key:';

/** The key of `key:{key}`; `undefined`: a redemption's id, or `latest`. @throws HttpError `invalid_idempotency_key` */
export function keyNamed(redemptionId: string): string | undefined {
  return redemptionId.startsWith(BY_KEY) ? idempotencyKey(redemptionId.slice(BY_KEY.length)) : undefined;
}

/** The id of the caller's command that redeems the gift with this key. */
function redeemCommand({ keys }: RedemptionKeyDeps, { principal }: EarlyCall, giftId: string, key: string): string {
  return keyedCommandId(keys.hash, principal, keyRoute(REDEEM_ROUTE, { giftId }), key);
}

/** Reverses what the key's redemption did, or voids it. `early`: of a gift's redemption `key:{key}`. */
export async function openCancel(deps: RedemptionKeyDeps, early: EarlyCall, key: string): Promise<Handler> {
  const user = userOf(early);
  const context = contextOf(early, deps.now());
  const { giftId = '' } = early.params;
  const redemptionId = idFrom(redeemCommand(deps, early, giftId, key), 'redemption');
  const loaded = await loadGift(deps, giftId, user, context.now);
  if (!hasRun(loaded, context) && !mayUnredeem(loaded.gift, loaded.facts.caller, redemptionId))
    throw new HttpError('cannot_unredeem');
  return async () => {
    const { event, history, replayed } = await cancelRedemption(deps, loaded, user, context, redemptionId);
    const redemption = redemptionsIn(history).find(({ id }) => id === redemptionId);
    const data =
      redemption === undefined
        ? {
            id: redemptionId,
            gift_id: giftId,
            redeemed: false,
            creation_at: event.at,
            updated_at: event.at,
            location_id: null,
          }
        : redemptionEntity(giftId, redemption);
    return { status: 200, body: { data }, position: event.position, waitFor: modelsToWaitFor(deps), replayed };
  };
}

const keySchema = entity('IdempotencyKey', {
  key: { type: 'string' },
  gift_id: { type: 'string' },
  status: {
    type: 'string',
    enum: ['done', 'running', 'unseen', 'void'],
    description:
      'done: it was answered, as `answer` says. `redemption` is what was redeemed, as it is now. running: it is being decided. unseen: no request with it is known; one that is under way may still come. void: nothing was redeemed with it, and never will be.',
  },
  answer: {
    ...record({ status: { type: 'integer' }, body: { type: 'object', additionalProperties: true } }, ['status']),
    title: 'FirstAnswer',
    description: 'The first answer, where it is done.',
  },
  redemption: redemptionSchema,
});

const schema = { ...keySchema, required: ['key', 'gift_id', 'status'] };

export function redemptionKeyRoutes(deps: RedemptionKeyDeps): Route[] {
  return [
    {
      method: 'GET',
      path: '/api/v2/idempotency-keys/:key',
      operation: 'getIdempotencyKey',
      summary: 'What became of a redemption, by its idempotency key',
      description:
        'Of a redemption of the gift that the caller sent with this key, through the same client. Keys of others are unseen. A redemption is known for good, a refusal for 24 hours.',
      tag: 'Redemptions',
      caller: 'user',
      params: { key: 'The `Idempotency-Key` that the redemption was sent with, percent-encoded.' },
      query: {
        type: 'object',
        required: ['gift_id'],
        properties: { gift_id: { type: 'string', maxLength: 64, description: 'The id or shortcode of the gift.' } },
      },
      answers: [
        {
          status: 200,
          description: 'What became of it.',
          schema: dataSchema(schema),
          example: {
            data: {
              key: 'till-7-000123',
              gift_id: redemptionExample.gift_id,
              status: 'done',
              answer: { status: 201, body: { data: redemptionExample } },
              redemption: redemptionExample,
            },
          },
        },
      ],
      errors: ['invalid_idempotency_key'],
      async open(early) {
        const key = idempotencyKey(early.params['key']) ?? '';
        return async ({ query }) => {
          const named = query['gift_id'] as string;
          return answerOf(deps, early, giftIdOf(named) ?? named, key);
        };
      },
    },
  ];
}

async function answerOf(deps: RedemptionKeyDeps, early: EarlyCall, giftId: string, key: string): Promise<Answer> {
  const commandId = redeemCommand(deps, early, giftId, key);
  // First the record, then the log: a redemption that ends in between is seen.
  const stored = await lookUpKey(deps.keys.records, commandId, deps.keys.keys);
  const history = giftIdOf(giftId) === undefined ? [] : await deps.events.read(giftStream(giftId));
  const redemptionId = idFrom(commandId, 'redemption');
  const redemption = redemptionsIn(history).find(({ id }) => id === redemptionId);
  const named = { key, gift_id: giftId };
  if (redemption !== undefined) {
    const { created_at } = redemption;
    const first = redemptionEntity(giftId, { ...redemption, redeemed: true, updated_at: created_at });
    const answer = { status: 201, body: { data: first } };
    const data = { ...named, status: 'done', answer, redemption: redemptionEntity(giftId, redemption) };
    return { status: 200, body: { data }, position: history.at(-1)?.position };
  }
  const voided = voidOf(history, redemptionId);
  if (voided !== undefined)
    return { status: 200, body: { data: { ...named, status: 'void' } }, position: voided.position };
  if (stored === undefined || stored === 'running')
    return { status: 200, body: { data: { ...named, status: stored ?? 'unseen' } } };
  const answer = {
    status: stored.status,
    ...(stored.body === undefined ? {} : { body: JSON.parse(stored.body) as object }),
  };
  return { status: 200, body: { data: { ...named, status: 'done', answer } } };
}
