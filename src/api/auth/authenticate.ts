import { copyWith } from '../../lib/copyWith.js';
import type { RouteCaller } from '../pipeline/route.js';
import { HttpError } from '../pipeline/errors.js';
import type { AccessTokens } from './accessTokens.js';
import { authenticationFailed } from './clients.js';
import type { Principal } from '../pipeline/principal.js';
import type { Sessions } from './sessions.js';
import type { Accounts, SessionAccounts } from './accountStatus.js';

export interface Authenticator {
  /**
   * A remembered caller; `undefined`: call `authenticate`. Synchronous, because nearly every request ends here.
   * @throws HttpError forbidden
   */
  recognise(header: string | undefined, need: RouteCaller): Principal | undefined;
  /**
   * The caller of a request, which is anonymous where the route needs no caller.
   * @throws HttpError authentication_failed without a valid token, forbidden for a client's token where a user's is
   * needed; UnavailableError
   */
  authenticate(header: string | undefined, need: RouteCaller): Promise<Principal>;
  /**
   * The client of a client's own token.
   * @throws HttpError authentication_failed, also for a user's token; UnavailableError
   */
  client(header: string | undefined): Promise<SessionAccounts['client']>;
}

const ANONYMOUS: Principal = { kind: 'anonymous' };
const BEARER = /^bearer +([\w\-.~+/]+=*) *$/i;

export function authenticator(deps: { tokens: AccessTokens; sessions: Sessions; accounts: Accounts }): Authenticator {
  const { tokens, sessions, accounts } = deps;
  const known = (header: string | undefined, need: RouteCaller): Principal | undefined => {
    const token = tokenOf(header);
    const claims = token === undefined ? undefined : tokens.remembered(token);
    const session = claims === undefined ? undefined : sessions.inUse(claims);
    const caller = session === undefined ? undefined : accounts.known(session);
    return claims === undefined || caller === undefined ? undefined : principalOf(caller, claims.sessionId, need);
  };
  const behind = async (header: string | undefined): Promise<SessionAccounts & { readonly sessionId: string }> => {
    const token = tokenOf(header);
    const claims = token === undefined ? undefined : await tokens.verify(token);
    const session = claims === undefined ? undefined : await sessions.use(claims);
    const caller = session === undefined ? undefined : await accounts.behind(session);
    if (claims === undefined || caller === undefined) throw authenticationFailed();
    return copyWith(caller, { sessionId: claims.sessionId });
  };
  return {
    recognise: (header, need) => (need === 'none' ? ANONYMOUS : known(header, need)),
    async authenticate(header, need) {
      if (need === 'none') return ANONYMOUS;
      const { sessionId, ...caller } = await behind(header);
      return principalOf(caller, sessionId, need);
    },
    async client(header) {
      const { client, user } = await behind(header);
      if (user !== undefined) throw authenticationFailed();
      return client;
    },
  };
}

function principalOf({ client, user }: SessionAccounts, sessionId: string, need: RouteCaller): Principal {
  if (user !== undefined) {
    const principal = { kind: 'user', clientId: client.id, sessionId, user } as const;
    return client.staff === false ? copyWith(principal, { staff: false }) : principal;
  }
  if (need === 'user') throw new HttpError('forbidden');
  return { kind: 'client', clientId: client.id, sessionId };
}

function tokenOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  // The usual spelling of a JWT; the look-up checks the rest.
  return header.startsWith('Bearer ey') ? header.slice(7) : BEARER.exec(header)?.[1];
}
