/** The caller of a request, by its access token. */
import { copyWith } from '../../domain/copyWith.js';
import type { RouteCaller } from '../pipeline/route.js';
import { HttpError } from '../pipeline/errors.js';
import type { AccessTokens } from './accessTokens.js';
import { authenticationFailed } from './clients.js';
import type { Principal } from './principal.js';
import type { Sessions } from './sessions.js';
import type { Accounts, SessionAccounts } from './accountStatus.js';

export interface Authenticator {
  /**
   * The remembered sender of this `Authorization` header; synchronous, since nearly every request ends here.
   * `undefined`: ask `authenticate`.
   * @throws HttpError forbidden as `authenticate` does
   */
  recognise(header: string | undefined, need: RouteCaller): Principal | undefined;
  /**
   * The sender of this `Authorization` header. Nothing is looked up where a route needs no caller.
   * @throws HttpError authentication_failed without a valid token, forbidden for a client's token where a user's is
   * needed; UnavailableError
   */
  authenticate(header: string | undefined, need: RouteCaller): Promise<Principal>;
  /**
   * The client whose own token this header carries.
   * @throws HttpError authentication_failed, also for a user's token; UnavailableError
   */
  client(header: string | undefined): Promise<SessionAccounts['client']>;
}

const ANONYMOUS: Principal = { kind: 'anonymous' };
/** `Bearer` in any case (RFC 9110), and a token of RFC 6750's alphabet. */
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

/** @throws HttpError forbidden */
function principalOf({ client, user }: SessionAccounts, sessionId: string, need: RouteCaller): Principal {
  if (user !== undefined) return { kind: 'user', clientId: client.id, sessionId, user };
  if (need === 'user') throw new HttpError('forbidden');
  return { kind: 'client', clientId: client.id, sessionId };
}

function tokenOf(header: string | undefined): string | undefined {
  if (header === undefined) return undefined;
  // The usual spelling; the look-up checks the rest.
  return header.startsWith('Bearer ey') ? header.slice(7) : BEARER.exec(header)?.[1];
}
