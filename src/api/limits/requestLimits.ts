import type { SharedCounter } from '../../runtime/limits/sharedCounter.js';
import type { RequestState } from '../pipeline/requestState.js';
import { limitItem, listed, noteLimit, policyItem } from '../pipeline/limitHeaders.js';
import type { LimitedRequest, Limits, Refuse } from '../pipeline/limitedRequest.js';
import type { NetworkKey } from './networkKeys.js';

/** Counters of requests; absent or `undefined`: no such limit. */
interface RequestCounters {
  readonly client?: SharedCounter | undefined;
  readonly user: SharedCounter | undefined;
  /** Counter of requests without a valid token, by address. */
  readonly anonymous?: SharedCounter | undefined;
}

export function requestLimits(
  { client, user, anonymous }: RequestCounters,
  networkKey: NetworkKey,
  refuse: Refuse,
): Limits['takeRequest'] {
  const clientPolicy = client === undefined ? undefined : policyItem(client.quota);
  const userPolicy = user === undefined ? undefined : policyItem(user.quota);
  const bothPolicies = clientPolicy === undefined ? userPolicy : listed(userPolicy, clientPolicy);
  const takeAnonymous = (request: LimitedRequest): void => {
    if (anonymous === undefined) return;
    const status = anonymous.take(networkKey(request.address));
    if (status.left === 0) throw refuse(request, anonymous.quota, status);
    noteLimit(request.ctx.state as RequestState, anonymous.quota, status, status.left - 1);
  };
  return (request) => {
    const { principal } = request;
    if (principal.kind === 'anonymous') return takeAnonymous(request);
    const state = request.ctx.state as RequestState;
    let limits: string | undefined;
    // A refused request counts for neither. A full client is found before the user counts, a full user before the
    // client counts.
    if (client !== undefined && !client.hasRoomForAll) {
      const status = client.peek(principal.clientId);
      if (status.left === 0) throw refuse(request, client.quota, status);
    }
    if (user !== undefined && principal.kind === 'user') {
      const status = user.take(principal.user.id);
      if (status.left === 0) throw refuse(request, user.quota, status);
      limits = limitItem(user.quota, status.left - 1, status.seconds);
    }
    if (client !== undefined) {
      const status = client.take(principal.clientId);
      if (status.left === 0) throw refuse(request, client.quota, status);
      limits = listed(limits, limitItem(client.quota, status.left - 1, status.seconds));
    }
    const policies = principal.kind === 'user' ? bothPolicies : clientPolicy;
    if (limits === undefined || policies === undefined) return undefined;
    state.rateLimit = limits;
    state.rateLimitPolicy = policies;
    return undefined;
  };
}
