/** Limits on the requests of a caller (docs/limits.md). All processes count together. */
import type { Closeable } from '../../lib/async/resources.js';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { clockMs } from '../../lib/clock.js';
import type { LimitName, LimitTally } from '../../metrics/limits.js';
import type { Records } from '../../ports/readStore.js';
import { countExchange } from '../../runtime/limits/countExchange.js';
import { SharedCounter } from '../../runtime/limits/sharedCounter.js';
import type { Followers } from '../../runtime/supervision/followers.js';
import { tooManyRequests } from '../auth/throttle.js';
import type { RequestState } from '../pipeline/requestState.js';
import { guessLimits } from './guessLimits.js';
import type { Limits, Refuse } from '../pipeline/limitedRequest.js';
import { noteLimit } from '../pipeline/limitHeaders.js';
import { networkKeys } from './networkKeys.js';
import { requestLimits } from './requestLimits.js';

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
