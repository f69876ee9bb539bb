/** Limits on guesses of gift ids (docs/api/limits.md#unknown-gifts): look-ups of gifts that do not exist. */
import type { SharedCounter, QuotaStatus } from '../../runtime/limits/sharedCounter.js';
import type { Principal } from '../pipeline/principal.js';
import type { RequestState } from '../pipeline/requestState.js';
import { noteLimit } from '../pipeline/limitHeaders.js';
import type { LimitedRequest, Limits, Refuse } from '../pipeline/limitedRequest.js';
import type { NetworkKey } from './networkKeys.js';

/** Share of its own limit that a caller may use while its address is full, so that others at the address go on. */
const SHARE_AT_FULL_ADDRESS = 1 / 10;

/** Counters of unknown gifts; `undefined`: no such limit. */
interface GuessCounters {
  readonly caller: SharedCounter | undefined;
  readonly address: SharedCounter | undefined;
}

export function guessLimits(
  { caller, address }: GuessCounters,
  networkKey: NetworkKey,
  refuse: Refuse,
): Pick<Limits, 'refuseGuesser' | 'takeUnknownGift'> {
  const hasShare = (own: QuotaStatus | undefined): boolean =>
    own !== undefined && caller !== undefined && own.left > caller.quota.limit * (1 - SHARE_AT_FULL_ADDRESS);

  function refuseGuesser(request: LimitedRequest): void {
    // Nearly every look-up ends here, without reading the caller's address.
    if (caller?.hasRoomForAll !== false && address?.hasRoomForAll !== false) return;
    const key = callerKey(request.principal);
    const own = key === undefined ? undefined : caller?.peek(key);
    if (caller !== undefined && own?.left === 0) throw refuse(request, caller.quota, own);
    const all = address?.peek(networkKey(request.address));
    if (address !== undefined && all?.left === 0 && !hasShare(own)) throw refuse(request, address.quota, all);
  }

  return {
    refuseGuesser,
    takeUnknownGift(request) {
      refuseGuesser(request);
      const state = request.ctx.state as RequestState;
      const key = callerKey(request.principal);
      if (caller !== undefined && key !== undefined) {
        const before = caller.take(key);
        noteLimit(state, caller.quota, before, before.left - 1);
      }
      if (address === undefined) return;
      const before = address.take(networkKey(request.address));
      if (key === undefined) noteLimit(state, address.quota, before, before.left - 1);
    },
  };
}

function callerKey(principal: Principal): string | undefined {
  if (principal.kind === 'anonymous') return undefined;
  return principal.kind === 'user' ? `${principal.clientId} ${principal.user.id}` : principal.clientId;
}
