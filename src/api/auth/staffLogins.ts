/** Logins of staff through the console (docs/console.md#sign-in), by the same checks and sessions as other logins. */
import type { Role } from '../../domain/account.js';
import type { ClientDocument } from '../../projections/accounts.js';
import { authenticationFailed } from './clients.js';
import { HttpError } from '../pipeline/errors.js';
import { rolesOf } from '../pipeline/principal.js';
import { type Accounts, clientOf } from './accountStatus.js';
import type { Authenticator } from './authenticate.js';
import type { Grants } from './grants.js';
import type { Sessions, TokenPair } from './sessions.js';

/** The client that the console logs staff in through. Its secret is not used: the service itself is the client. */
const CONSOLE_CLIENT = 'console';

export interface StaffLogin extends TokenPair {
  readonly user: { readonly id: string; readonly roles: readonly Role[] };
}

/** Every method throws HttpError authentication_failed, too_many_requests, and UnavailableError. */
export interface StaffLogins {
  /**
   * @param address for throttling
   * @throws HttpError no_console_client without that client; authentication_failed also for users who may not use the
   * console, so that nobody learns of a right password here
   */
  login(username: string, password: string, address: string): Promise<StaffLogin>;
  /** @throws HttpError forbidden for a user whose roles were taken away, whose login ends */
  refresh(refreshToken: string): Promise<StaffLogin>;
  logout(refreshToken: string): Promise<void>;
}

export function staffLogins(deps: {
  grants: Pick<Grants, 'staffPassword' | 'refreshOf'>;
  sessions: Pick<Sessions, 'revoke'>;
  authenticator: Authenticator;
  accounts: Accounts;
}): StaffLogins {
  const { grants, sessions, authenticator, accounts } = deps;
  const client = async (): Promise<ClientDocument> => {
    const found = await accounts.accepted(
      async (read) => clientOf(read, CONSOLE_CLIENT),
      async (one) => one?.active === true && one.staff !== false,
    );
    if (found === undefined) throw new HttpError('no_console_client');
    return found;
  };
  const asStaff = async (pair: TokenPair): Promise<StaffLogin> => {
    const principal = await authenticator.authenticate(`Bearer ${pair.accessToken}`, 'user');
    const roles = rolesOf(principal);
    if (principal.kind !== 'user' || roles.length === 0) {
      await sessions.revoke(pair.accessToken, CONSOLE_CLIENT);
      throw new HttpError('forbidden');
    }
    return { ...pair, user: { id: principal.user.id, roles } };
  };
  return {
    async login(username, password, address) {
      const through = await client();
      try {
        return await asStaff(await grants.staffPassword(through, username, password, address));
      } catch (error) {
        throw error instanceof HttpError && error.code === 'forbidden' ? authenticationFailed() : error;
      }
    },
    async refresh(refreshToken) {
      if (refreshToken === '') throw authenticationFailed();
      return asStaff(await grants.refreshOf(await client(), refreshToken));
    },
    async logout(refreshToken) {
      await sessions.revoke(refreshToken, CONSOLE_CLIENT);
    },
  };
}
