/** Limits on the requests of a caller (docs/limits.md). All processes count together. */
import type { Closeable } from '../../lib/async/resources.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { clockMs } from '../../lib/clock.js';
import type { LimitName, LimitTally } from '../../metrics/limits.js';
import type { Records } from '../../ports/readStore.js';
import { countExchange } from '../../runtime/limits/countExchange.js';
import { SharedCounter, type QuotaStatus } from '../../runtime/limits/sharedCounter.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import { tooManyRequests } from '../auth/throttle.js';
import type { RequestState } from '../pipeline/requestState.js';
import type { Limits, Refuse, LimitedRequest } from '../pipeline/limitedRequest.js';
import { noteLimit, limitItem, listed, policyItem } from '../pipeline/limitHeaders.js';
import type { Principal } from '../pipeline/principal.js';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';
import { networkOf } from '../auth/address.js';

/** Most requests or look-ups by each kind of caller; 0: no limit. */
export interface LimitSettings {
  /** Requests of one client in a minute; the next three limits are in a minute, too. */
  readonly clientRateLimit: number;
  readonly userRateLimit: number;
  readonly opsRateLimit: number;
  readonly addressRateLimit: number;
  /** Look-ups of unknown gifts by one caller in 15 minutes; the next limit is in 15 minutes, too. */
  readonly unknownGiftsPerCaller: number;
  readonly unknownGiftsPerAddress: number;
}

type WindowLimit = Extract<
  LimitName,
  'client' | 'user' | 'ops' | 'address' | 'unknown-gifts' | 'unknown-gifts-address'
>;

/** The most of each limit within its window; 0: no limit. */
export const mostOfWindows = (settings: LimitSettings): Readonly<Record<WindowLimit, number>> => ({
  client: settings.clientRateLimit,
  user: settings.userRateLimit,
  ops: settings.opsRateLimit,
  address: settings.addressRateLimit,
  'unknown-gifts': settings.unknownGiftsPerCaller,
  'unknown-gifts-address': settings.unknownGiftsPerAddress,
});

const MINUTE = 60;
const QUARTER_HOUR = 900;

interface LimitDeps {
  readonly settings: LimitSettings;
  readonly records: Pick<Records, 'list' | 'put'>;
  readonly hash: KeyedHash;
  readonly followers: Pick<Followers, 'start'>;
  /** Called with the limit of each refused request. */
  readonly onLimited?: LimitTally | undefined;
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

export function openLimits({
  settings,
  records,
  hash,
  followers,
  onLimited,
  now = clockMs,
}: LimitDeps): Limits & Closeable {
  const most = mostOfWindows(settings);
  const counterOf = (name: WindowLimit, windowSeconds: number): SharedCounter | undefined =>
    most[name] === 0 ? undefined : new SharedCounter({ name, limit: most[name], windowSeconds }, now);
  const client = counterOf('client', MINUTE);
  const user = counterOf('user', MINUTE);
  const ops = counterOf('ops', MINUTE);
  const anonymous = counterOf('address', MINUTE);
  const caller = counterOf('unknown-gifts', QUARTER_HOUR);
  const address = counterOf('unknown-gifts-address', QUARTER_HOUR);
  const counters = [client, user, ops, anonymous, caller, address].flatMap((counter) => counter ?? []);
  const refuse: Refuse = (request, quota, status) => {
    onLimited?.(quota.name as LimitName);
    noteLimit(request.ctx.state as RequestState, quota, status, 0);
    return tooManyRequests(status.seconds * 1_000);
  };
  const networkKey = networkKeys(hash);
  const follower = followers.start('limits', countExchange(counters, records), { aside: true });
  return {
    takeRequest: requestLimits({ client, user, anonymous }, networkKey, refuse),
    takeOpsRequest: requestLimits({ user: ops }, networkKey, refuse),
    ...guessLimits({ caller, address }, networkKey, refuse),
    close: async () => follower.close(),
  };
}

/** Share of its own limit that a caller may use while its address is full, so that others at the address go on. */
const SHARE_AT_FULL_ADDRESS = 1 / 10;

/** Counters of unknown gifts; `undefined`: no such limit. */
interface GuessCounters {
  readonly caller: SharedCounter | undefined;
  readonly address: SharedCounter | undefined;
}

/** Limits on guesses of gift ids (docs/api/limits.md#unknown-gifts): look-ups of gifts that do not exist. */
function guessLimits(
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

/** Most addresses whose hash is in memory. */
const REMEMBERED = 10_000;

/** The key of an address in the counters, whose records hold no address. */
type NetworkKey = (address: string) => string;

function networkKeys(hash: KeyedHash): NetworkKey {
  const hashes = new LRUCache<string, string>(atMost(REMEMBERED));
  return (address) => {
    let key = hashes.get(address);
    if (key === undefined) hashes.set(address, (key = hash('address', networkOf(address))));
    return key;
  };
}
