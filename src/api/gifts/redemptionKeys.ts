/** Redemptions by their idempotency keys, for tills that lost an answer (docs/api/tills.md). */
import { cancelRedemption } from '../../commands/cancelRedemption.js';
import { idFrom } from '../../commands/commandIds.js';
import { hasRun, loadGift } from '../../commands/loadGift.js';
import { mayCancel } from '../../domain/gift/decisions.js';
import { redemptionOfCommand } from '../../domain/gift/redemptionIds.js';
import { HttpError } from '../pipeline/errors.js';
import type { PipelineDeps } from '../pipeline/exchange.js';
import { idempotencyKey, keyedCommandId, keyRoute } from '../pipeline/idempotency.js';
import type { EarlyCall, Handler, RouteDescription } from '../pipeline/route.js';
import { contextOf, userOf } from '../pipeline/commandContext.js';
import { type GiftRouteDeps } from './deps.js';
import { redemptionEntity } from '../../entities/gifts.js';
import { redemptionsIn } from './redemptionList.js';

export interface RedemptionKeyDeps extends GiftRouteDeps {
  readonly keys: Pick<PipelineDeps, 'hash' | 'keys' | 'records'>;
}

export const REDEEM_ROUTE = { method: 'POST', path: '/api/v2/gifts/:giftId/redemptions' } as const;

const BY_KEY = 'key:';

/**
 * The idempotency key in `key:{key}`; `undefined`: the text is a redemption's id, or `latest`.
 * @throws HttpError `invalid_idempotency_key`
 */
export function keyNamed(redemptionId: string): string | undefined {
  return redemptionId.startsWith(BY_KEY) ? idempotencyKey(redemptionId.slice(BY_KEY.length)) : undefined;
}

/** The id of the caller's command that was sent to the route with this key. */
export function keyedCommand(
  { keys }: RedemptionKeyDeps,
  { principal }: Pick<EarlyCall, 'principal'>,
  route: Pick<RouteDescription, 'method' | 'path'>,
  params: Readonly<Record<string, string>>,
  key: string,
): string {
  return keyedCommandId(keys.hash, principal, keyRoute(route, params), key);
}

/**
 * Reverses the redemption that was requested with the key, or voids it. `early`: a call about a gift's redemption
 * `key:{key}`.
 */
export async function openCancel(deps: RedemptionKeyDeps, early: EarlyCall, key: string): Promise<Handler> {
  const user = userOf(early);
  const context = contextOf(early, deps.now());
  const { giftId = '' } = early.params;
  const commandPart = idFrom(keyedCommand(deps, early, REDEEM_ROUTE, { giftId }, key), 'redemption');
  const loaded = await loadGift(deps, giftId, user, context.now);
  if (!hasRun(loaded, context) && !mayCancel(loaded.gift, loaded.facts.caller, commandPart))
    throw new HttpError('cannot_unredeem');
  return async () => {
    const { event, history, replayed } = await cancelRedemption(deps, loaded, user, context, commandPart);
    const redemption = redemptionOfCommand(redemptionsIn(history), commandPart);
    const data =
      redemption === undefined
        ? {
            id: commandPart,
            gift_id: giftId,
            redeemed: false,
            creation_at: event.at,
            updated_at: event.at,
            location_id: null,
          }
        : redemptionEntity(giftId, redemption);
    return { body: { data }, position: event.position, replayed };
  };
}
