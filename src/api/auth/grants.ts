import type { KeyedHash } from '../../domain/keyedHash.js';
import { isStaff } from '../../domain/account.js';
import { usernameSubject } from '../../domain/personalFields.js';
import { normaliseUsername, opaqueString } from '../../lib/precis.js';
import type { ClientDocument, UserDocument } from '../../projections/accounts.js';
import type { Subjects } from '../../runtime/personal/index.js';
import { HttpError } from '../pipeline/errors.js';
import type { Authenticator } from './authenticate.js';
import { authenticationFailed, type ClientCredentials } from './clients.js';
import type { LoginHashes } from './loginHashes.js';
import type { Passwords } from './passwords.js';
import type { Sessions, TokenHolder, TokenPair } from './sessions.js';
import { type Accounts, sessionAccounts, userNamed } from './accountStatus.js';
import type { Claimant, Throttle } from './throttle.js';

/**
 * Grants of tokens, and their revocation. Every method throws HttpError authentication_failed, too_many_requests, and
 * UnavailableError. `address` is for throttling.
 */
export interface Grants {
  loginClient(header: string | undefined): Promise<ClientDocument>;
  clientCredentials(credentials: ClientCredentials, address: string): Promise<TokenPair>;
  /** @throws HttpError forbidden where the password is right and the client may not log this user in */
  password(client: ClientDocument, username: string, password: string, address: string): Promise<TokenPair>;
  /**
   * As `password`, for staff whom the client may log in. Others are refused as unknown users are, in the time taken and
   * by the counters too: neither reveals that a password is right.
   */
  staffPassword(client: ClientDocument, username: string, password: string, address: string): Promise<TokenPair>;
  refresh(credentials: ClientCredentials, refreshToken: string, address: string): Promise<TokenPair>;
  /** The next pair of a login through a client that needs no secret here, because the service itself is it. */
  refreshOf(client: ClientDocument, refreshToken: string): Promise<TokenPair>;
  /** @throws HttpError authentication_failed also for a token of another client */
  revoke(credentials: ClientCredentials, token: string, address: string): Promise<void>;
}

export function grants(deps: {
  authenticator: Authenticator;
  accounts: Accounts;
  clients: { authenticate(credentials: ClientCredentials, by: Claimant): Promise<ClientDocument> };
  passwords: Passwords;
  hashes: LoginHashes;
  sessions: Sessions;
  throttle: Throttle;
  hash: KeyedHash;
  subjects: Pick<Subjects, 'find'>;
}): Grants {
  const { authenticator, accounts, clients, passwords, hashes, sessions, throttle, hash, subjects } = deps;
  const refreshOf = async (client: ClientDocument, refreshToken: string): Promise<TokenPair> => {
    const pair = await sessions.refresh(refreshToken, client.id, async (session) => {
      const user = await accounts.userOf(session);
      if (user === undefined || sessionAccounts(session, client, user) === undefined || !mayLogIn(client, user.id))
        return false;
      return accounts.isCurrent(user);
    });
    if (pair === undefined) throw authenticationFailed();
    return pair;
  };
  /** The active user with this password; a user whom `isMeant` leaves out counts as unknown. */
  const userWith = async (
    username: string,
    password: string,
    address: string,
    isMeant: (user: UserDocument) => boolean,
  ): Promise<UserDocument> => {
    const named = usernameSubject(normaliseUsername(username));
    const usernameHash = hash('username', named.text);
    // A hash made elsewhere may be of the password as typed (RFC 8265 composes it).
    const candidates = [...new Set([opaqueString(password), password])];
    const user = await accounts.accepted(
      async (read) => {
        const [usernameId] = await subjects.find([named]);
        const found = await userNamed(read, usernameId);
        return found !== undefined && isMeant(found) ? found : undefined;
      },
      // An inactive user's right password counts as a failure: otherwise the counters would reveal it.
      async (account) =>
        throttle.attempt({ address, usernameHash, userId: account?.id }, async (reserve) => {
          const stored = await hashes.of(usernameHash, account);
          const right = await passwords.verify(stored, candidates, reserve);
          if (account === undefined || stored === undefined || right === undefined) return false;
          if (!(await accounts.isCurrent(account))) return false;
          await hashes.renew(usernameHash, account, stored, opaqueString(password));
          return true;
        }),
    );
    if (user === undefined) throw authenticationFailed();
    return user;
  };
  return {
    refreshOf,
    loginClient: async (header) => authenticator.client(header),

    async clientCredentials(credentials, address) {
      return sessions.start(await clients.authenticate(credentials, { address }));
    },

    async password(client, username, password, address) {
      const user = await userWith(username, password, address, () => true);
      if (!mayLogIn(client, user.id)) throw new HttpError('forbidden');
      return sessions.start(client, user);
    },

    async staffPassword(client, username, password, address) {
      const isMeant = (one: UserDocument): boolean => isStaff(one) && mayLogIn(client, one.id);
      return sessions.start(client, await userWith(username, password, address, isMeant));
    },

    async refresh(credentials, refreshToken, address) {
      const holder = await sessions.holder(refreshToken);
      // Without a token of this service, the answer must reveal nothing about the client's secret.
      if (holder === undefined) throw authenticationFailed();
      const client = await clients.authenticate(credentials, claimant(credentials, holder, address));
      return refreshOf(client, refreshToken);
    },

    async revoke(credentials, token, address) {
      const holder = await sessions.holder(token);
      const client = await clients.authenticate(credentials, claimant(credentials, holder, address));
      if (!(await sessions.revoke(token, client.id))) throw authenticationFailed();
    },
  };
}

function claimant({ id }: ClientCredentials, holder: TokenHolder | undefined, address: string): Claimant {
  return holder?.client === id ? { address, sessionId: holder.sessionId } : { address };
}

function mayLogIn(client: ClientDocument, userId: string): boolean {
  return client.users === null || client.users.includes(userId);
}
