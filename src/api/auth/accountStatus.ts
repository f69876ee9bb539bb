/**
 * The accounts behind a session: its client and user, while they are active and have the credentials with which it
 * began.
 */
import { accountStream } from '../../domain/account.js';
import type { EventStore } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import {
  type AccountDocument,
  type ClientDocument,
  type UserDocument,
  accountsProjection,
} from '../../projections/accounts.js';
import { foldDocument } from '../../runtime/readmodels/foldDocument.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import { within } from '../../lib/async/within.js';
import { FRESH_MS, type FreshCache, freshCache } from './freshCache.js';
import type { Session } from './rotation.js';

/** The client, and the user unless it is the client's own session. */
export interface SessionAccounts {
  readonly client: ClientDocument;
  readonly user?: UserDocument;
}

/** Looks accounts up. Every method throws UnavailableError where the read model can't answer. */
export interface Accounts {
  client(id: string): Promise<ClientDocument | undefined>;
  user(id: string): Promise<UserDocument | undefined>;
  /** The user with this HMAC of a name. */
  userNamed(usernameHash: string): Promise<UserDocument | undefined>;
  /**
   * Whether the log holds nothing newer against the account: another secret, a disabling. Asked before tokens are
   * handed out, once the caller has proved who it is: the read model may be behind. Where the log can't be reached
   * within a second, the read model decides.
   */
  isCurrent(document: UserDocument | ClientDocument): Promise<boolean>;
  /**
   * Waits until the read model shows the log's present end. Asked before every refusal of a login, whatever was wrong,
   * so that the time taken doesn't tell which names exist: a model that is behind proves nothing. Where the log can't
   * be reached, the read model decides.
   * @throws UnavailableError where the read model is behind for another second
   */
  wholeLogShown(): Promise<void>;
  /** The remembered accounts behind the session; `undefined`: ask `behind`. */
  known(session: Session): SessionAccounts | undefined;
  /**
   * The accounts behind the session, at most `FRESH_MS` old; `undefined` where one is inactive or has other credentials
   * than when it began.
   */
  behind(session: Session): Promise<SessionAccounts | undefined>;
}

const NOBODY = { value: undefined };
/** How long the log is waited for, ms. While it hangs, logins still work. */
const LOG_MS = 1_000;
const CACHED = 10_000;
/** No account has a longer id. */
const MAX_ID_LENGTH = 64;

export interface AccountSources {
  readonly model: ReadModel<AccountDocument>;
  readonly log: Pick<EventStore, 'read' | 'end'>;
}

/** `now`: milliseconds. */
export function accounts({ model, log }: AccountSources, now: () => number): Accounts {
  const client = async (id: string): Promise<ClientDocument | undefined> => {
    const document = id.length > MAX_ID_LENGTH ? undefined : await model.get(`client-${id}`);
    return document?.entry === 'client' ? document : undefined;
  };
  const user = async (id: string): Promise<UserDocument | undefined> => {
    const document = await model.get(`user-${id}`);
    return document?.entry === 'user' ? document : undefined;
  };
  const clients = freshCache({ max: CACHED, maxAgeMs: FRESH_MS, now, look: client });
  const users = freshCache({ max: CACHED, maxAgeMs: FRESH_MS, now, look: user });
  return {
    client,
    user,
    async userNamed(usernameHash) {
      const name = await model.get(`username-${usernameHash}`);
      return name?.entry === 'username' && name.user_id !== null ? user(name.user_id) : undefined;
    },
    async isCurrent(document) {
      const stream = accountStream(document.entry, document.id);
      const events = await within(log.read(stream), LOG_MS, () => []).catch((error: unknown) => {
        if (error instanceof UnavailableError) return [];
        throw error;
      });
      const account = (foldDocument(accountsProjection, events, stream) ?? document) as UserDocument | ClientDocument;
      // Not the credential's number: the read model of another release may count it differently.
      return account.active && secretOf(account) === secretOf(document);
    },
    async wholeLogShown() {
      const end = await within(log.end(), LOG_MS, () => undefined).catch((error: unknown) => {
        if (error instanceof UnavailableError) return undefined;
        throw error;
      });
      if (end !== undefined && !(await model.reached(end, LOG_MS)))
        throw new UnavailableError('accounts are behind the log, which may tell of this login');
    },
    known(session) {
      const itsClient = clients.peek(session.client);
      const itsUser = session.user === null ? NOBODY : users.peek(session.user);
      return itsClient === undefined || itsUser === undefined
        ? undefined
        : sessionAccounts(session, itsClient.value, itsUser.value);
    },
    async behind(session) {
      return sessionAccounts(
        session,
        ...(await Promise.all([
          looked(clients, session.client),
          session.user === null ? undefined : looked(users, session.user),
        ])),
      );
    },
  };
}

/** The accounts behind the session; `undefined` where they have changed since it began. */
export function sessionAccounts(
  session: Session,
  client: ClientDocument | undefined,
  user: UserDocument | undefined,
): SessionAccounts | undefined {
  if (client?.active !== true || client.credential !== session.clientCredential) return undefined;
  if (session.user === null) return { client };
  return user?.active === true && user.credential === session.userCredential ? { client, user } : undefined;
}

const secretOf = (account: UserDocument | ClientDocument): string =>
  account.entry === 'user' ? account.password_hash : account.secret_hash;

async function looked<V>(cache: FreshCache<V>, key: string): Promise<V> {
  const fresh = cache.peek(key);
  return fresh === undefined ? cache.load(key) : fresh.value;
}
