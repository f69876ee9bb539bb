import type { KeyedHash } from '../../domain/keyedHash.js';
import { clockMs } from '../../lib/clock.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { AccountDocument } from '../../projections/accounts.js';
import type { Subjects } from '../../runtime/personal/index.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import type { RouterMaker, SubjectRouter } from '../pipeline/router.js';
import { accessTokens } from './accessTokens.js';
import { type CallerAddress, callerAddress } from './address.js';
import { type Authenticator, authenticator } from './authenticate.js';
import { clientAuthentication } from './clients.js';
import { freshCache } from './freshCache.js';
import { grants } from './grants.js';
import { oauthRoutes } from './oauth.js';
import { loginHashes } from './loginHashes.js';
import { passwords } from './passwords.js';
import { revokeRoutes } from './revoke.js';
import { type Lifetimes, sessions } from './sessions.js';
import { accounts } from './accountStatus.js';
import { type StaffLogins, staffLogins } from './staffLogins.js';
import { throttle } from './throttle.js';

interface AuthOptions {
  readonly accounts: ReadModel<AccountDocument>;
  readonly passwordCosts: Pick<ReadModel<object>, 'find'>;
  /** Event log, because the read model may be behind it. */
  readonly log: Pick<EventStore, 'read' | 'end'>;
  readonly records: Records;
  /** Secret keys of access tokens, each at least 32 bytes. */
  readonly tokenKeys: readonly string[];
  readonly hash: KeyedHash;
  readonly subjects: Pick<Subjects, 'find'>;
  readonly ttl: Lifetimes;
  /** CIDRs of proxies with a reliable `X-Forwarded-For`. */
  readonly trustedProxies: readonly string[];
  /** Milliseconds since the epoch. */
  readonly now?: () => number;
}

export interface Auth {
  readonly recognise: Authenticator['recognise'];
  readonly authenticate: Authenticator['authenticate'];
  readonly address: CallerAddress;
  /** Logins of staff through the console. */
  readonly staff: StaffLogins;
  router(routerOf: RouterMaker): SubjectRouter;
  close(): Promise<void>;
}

/** @throws Error for a short token key, or a proxy that is no CIDR */
export function createAuth(options: AuthOptions): Auth {
  const { records, hash, ttl, now = clockMs } = options;
  const address = callerAddress(options.trustedProxies);
  const tokens = accessTokens(options.tokenKeys, now);
  const accountsNow = accounts({ model: options.accounts, log: options.log }, now);
  const allSessions = sessions({ records, tokens, hash, ttl, now });
  const counters = throttle(records, hash, now);
  const checker = passwords({ costs: storedCosts(options.passwordCosts, now) });
  const callers = authenticator({ tokens, sessions: allSessions, accounts: accountsNow });
  const clients = clientAuthentication({
    accounts: accountsNow,
    passwords: checker,
    throttle: counters,
    records,
    hash,
  });
  const all = grants({
    authenticator: callers,
    accounts: accountsNow,
    clients,
    passwords: checker,
    hashes: loginHashes(records, hash, now),
    sessions: allSessions,
    throttle: counters,
    hash,
    subjects: options.subjects,
  });
  return {
    recognise: callers.recognise,
    authenticate: callers.authenticate,
    address,
    staff: staffLogins({ grants: all, sessions: allSessions, authenticator: callers, accounts: accountsNow }),
    router: (routerOf) => routerOf('/oauth', [...oauthRoutes(all), ...revokeRoutes(all)]),
    close: async () => checker.close(),
  };
}

/**
 * Costs of all stored password hashes. Until they are first known, after a deployment, unknown names take as long as
 * those that were hashed here.
 */
function storedCosts(model: Pick<ReadModel<object>, 'find'>, now: () => number): () => Promise<readonly string[]> {
  const cache = freshCache<readonly string[]>({
    max: 1,
    now,
    look: async () => (await model.find({})).map(({ id }) => id),
  });
  return async () => {
    const known = cache.peek('');
    if (known !== undefined) return known.value;
    try {
      return await cache.load('');
    } catch (error) {
      if (error instanceof UnavailableError) return [];
      throw error;
    }
  };
}
