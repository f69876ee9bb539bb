/** The accounts behind a session, while they are active and have the credentials of the login. */
import { accountStream } from '../../domain/account.js';
import type { EventStore } from '../../ports/eventStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import {
  type AccountDocument,
  type ClientDocument,
  type UserDocument,
  accountInLog,
} from '../../projections/accounts.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { within } from '../../lib/async/within.js';
import { type FreshCache, freshCache } from './freshCache.js';
import type { Session } from './rotation.js';

export interface SessionAccounts {
  readonly client: ClientDocument;
  readonly user?: UserDocument;
}

/** Accounts by their streams' names, as the read model shows them or as the log has them. */
type ReadAccount = (stream: string) => Promise<AccountDocument | undefined>;

export interface Accounts {
  /**
   * The session's user as the read model shows them, or as the log has them where the read model may be from before the
   * login. @throws UnavailableError
   */
  userOf(session: Session): Promise<UserDocument | undefined>;
  /**
   * Whether the log has no newer secret or disabling, which the read model may lack. Without the log, the read model
   * decides after a second.
   */
  isCurrent(document: UserDocument | ClientDocument): Promise<boolean>;
  /**
   * The account that `look` finds, if `accept` takes it. Before a refusal the account is read from the log, and decided
   * again if it differs there. The read model may lack it, or its new secret. Every refusal reads the log: otherwise
   * the time taken would reveal which names exist. Without the log, the read model decides after a second.
   * @throws errors of `look` and `accept`
   */
  accepted<A extends UserDocument | ClientDocument>(
    look: (read: ReadAccount) => Promise<A | undefined>,
    accept: (account: A | undefined) => Promise<boolean>,
  ): Promise<A | undefined>;
  /** Remembered accounts of a session; `undefined`: call `behind`. */
  known(session: Session): SessionAccounts | undefined;
  /**
   * The session's accounts, at most `FRESH_MS` old. `undefined`: an account is inactive or its credentials have changed
   * since the login.
   */
  behind(session: Session): Promise<SessionAccounts | undefined>;
}

const NOBODY = { value: undefined };
/** How long to wait for the log, ms. While the log hangs, logins still work. */
const LOG_MS = 1_000;
const CACHED = 10_000;
const MAX_ID_LENGTH = 64;

interface AccountSources {
  readonly model: ReadModel<AccountDocument>;
  readonly log: Pick<EventStore, 'read'>;
}

export function accounts({ model, log }: AccountSources, now: () => number): Accounts {
  const read: ReadAccount = async (stream) => model.get(stream);
  const inLog: ReadAccount = async (stream) => accountInLog(log, stream);
  const client = async (id: string): Promise<ClientDocument | undefined> => clientOf(read, id);
  const user = async (id: string): Promise<UserDocument | undefined> => userOf(read, id);
  const clients = freshCache({ max: CACHED, now, look: client });
  const users = freshCache({ max: CACHED, now, look: user });
  return {
    async userOf({ user: id, userCredential }) {
      if (id === null) return undefined;
      const shown = await user(id);
      return mayBeOlder(shown, userCredential) ? userOf(inLog, id) : shown;
    },
    async isCurrent(document) {
      const stream = accountStream(document.entry, document.id);
      const logged = await within(inLog(stream), LOG_MS, () => undefined).catch((error: unknown) => {
        if (error instanceof UnavailableError) return undefined;
        throw error;
      });
      const account = (logged ?? document) as UserDocument | ClientDocument;
      // Compares secrets, not credential numbers: the read model of another release may count those differently.
      return account.active && secretOf(account) === secretOf(document);
    },
    async accepted(look, accept) {
      const found = await look(read);
      if (await accept(found)) return found;
      const logged = await within(look(inLog), LOG_MS, () => found).catch((error: unknown) => {
        if (error instanceof UnavailableError) return found;
        throw error;
      });
      return logged !== undefined && !isAlike(found, logged) && (await accept(logged)) ? logged : undefined;
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
          looked(clients, session.client, session.clientCredential, async (id) => clientOf(inLog, id)),
          session.user === null
            ? undefined
            : looked(users, session.user, session.userCredential, async (id) => userOf(inLog, id)),
        ])),
      );
    },
  };
}

export async function clientOf(read: ReadAccount, id: string): Promise<ClientDocument | undefined> {
  const document = id.length > MAX_ID_LENGTH ? undefined : await read(`client-${id}`);
  return document?.entry === 'client' ? document : undefined;
}

async function userOf(read: ReadAccount, id: string): Promise<UserDocument | undefined> {
  const document = await read(`user-${id}`);
  return document?.entry === 'user' ? document : undefined;
}

/**
 * The user of a username. It reads as much for an unknown name as for a known one, so that the time taken reveals
 * neither.
 */
export async function userNamed(read: ReadAccount, usernameId: string | undefined): Promise<UserDocument | undefined> {
  const name = await read(`username-${usernameId ?? 'unknown'}`);
  const userId = name?.entry === 'username' ? (name.user_id ?? undefined) : undefined;
  const user = await userOf(read, userId ?? 'unknown');
  return userId === undefined ? undefined : user;
}

/** The session's accounts; `undefined`: an account is inactive or has changed since the session's start. */
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

function isAlike<A extends UserDocument | ClientDocument>(found: A | undefined, logged: A): boolean {
  return found?.id === logged.id && found.active === logged.active && secretOf(found) === secretOf(logged);
}

/**
 * Whether the read model's version of a session's account may be from before the login. A login needs an active
 * account, so that an inactive one may have been active again by then.
 */
const mayBeOlder = (account: ClientDocument | UserDocument | undefined, credential: number | null): boolean =>
  account === undefined || !account.active || account.credential < (credential ?? 0);

/**
 * Account of a session. A version from before the session's login, remembered or in the read model, says nothing about
 * the session, so the log is read.
 */
async function looked<A extends ClientDocument | UserDocument>(
  cache: FreshCache<A | undefined>,
  id: string,
  credential: number | null,
  inLog: (id: string) => Promise<A | undefined>,
): Promise<A | undefined> {
  const fresh = cache.peek(id)?.value;
  if (!mayBeOlder(fresh, credential)) return fresh;
  const shown = await cache.load(id);
  return mayBeOlder(shown, credential) ? inLog(id) : shown;
}
