/** The accounts behind a session, while they are active and have the credentials of the login. */
import { isDeepStrictEqual } from 'node:util';
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

export interface SessionAccounts {
  readonly client: ClientDocument;
  readonly user?: UserDocument;
}

export interface Accounts {
  client(id: string): Promise<ClientDocument | undefined>;
  user(id: string): Promise<UserDocument | undefined>;
  userNamed(usernameId: string | undefined): Promise<UserDocument | undefined>;
  /**
   * Whether the log has no newer secret or disabling, which the read model may lack. Without the log, the read model
   * decides after a second.
   */
  isCurrent(document: UserDocument | ClientDocument): Promise<boolean>;
  /**
   * What `look` finds, if `accept` takes it. A refusal waits for the log's present end, and is decided again if the
   * account is another by then: the read model may have lacked it, or its new secret. Every refusal waits: otherwise
   * the time taken would reveal which names exist. Without the log, the read model decides.
   * @throws UnavailableError when still behind after a second; errors of `look` and `accept`
   */
  accepted<A extends UserDocument | ClientDocument>(
    look: () => Promise<A | undefined>,
    accept: (account: A | undefined) => Promise<boolean>,
  ): Promise<A | undefined>;
  /** `undefined`: not remembered; ask `behind`. */
  known(session: Session): SessionAccounts | undefined;
  /** At most `FRESH_MS` old. `undefined`: an account is inactive or its credentials have changed since the login. */
  behind(session: Session): Promise<SessionAccounts | undefined>;
}

const NOBODY = { value: undefined };
/** How long to wait for the log, ms. While the log hangs, logins still work. */
const LOG_MS = 1_000;
const CACHED = 10_000;
const MAX_ID_LENGTH = 64;

export interface AccountSources {
  readonly model: ReadModel<AccountDocument>;
  readonly log: Pick<EventStore, 'read' | 'end'>;
}

export function accounts({ model, log }: AccountSources, now: () => number): Accounts {
  const client = async (id: string): Promise<ClientDocument | undefined> => {
    const document = id.length > MAX_ID_LENGTH ? undefined : await model.get(`client-${id}`);
    return document?.entry === 'client' ? document : undefined;
  };
  const user = async (id: string): Promise<UserDocument | undefined> => {
    const document = await model.get(`user-${id}`);
    return document?.entry === 'user' ? document : undefined;
  };
  const wholeLogShown = async (): Promise<void> => {
    const end = await within(log.end(), LOG_MS, () => undefined).catch((error: unknown) => {
      if (error instanceof UnavailableError) return undefined;
      throw error;
    });
    if (end !== undefined && !(await model.reached(end, LOG_MS)))
      throw new UnavailableError('accounts are behind the log, which may tell of this login');
  };
  const clients = freshCache({ max: CACHED, maxAgeMs: FRESH_MS, now, look: client });
  const users = freshCache({ max: CACHED, maxAgeMs: FRESH_MS, now, look: user });
  return {
    client,
    user,
    async userNamed(usernameId) {
      const name = await model.get(`username-${usernameId ?? 'unknown'}`);
      return name?.entry === 'username' && name.user_id !== null ? user(name.user_id) : undefined;
    },
    async isCurrent(document) {
      const stream = accountStream(document.entry, document.id);
      const events = await within(log.read(stream), LOG_MS, () => []).catch((error: unknown) => {
        if (error instanceof UnavailableError) return [];
        throw error;
      });
      const account = (foldDocument(accountsProjection, events, stream) ?? document) as UserDocument | ClientDocument;
      // Compares secrets, not credential numbers: the read model of another release may count those differently.
      return account.active && secretOf(account) === secretOf(document);
    },
    async accepted(look, accept) {
      const found = await look();
      if (await accept(found)) return found;
      await wholeLogShown();
      const shown = await look();
      return !isDeepStrictEqual(shown, found) && (await accept(shown)) ? shown : undefined;
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
          looked(clients, session.client, session.clientCredential),
          session.user === null ? undefined : looked(users, session.user, session.userCredential),
        ])),
      );
    },
  };
}

/** `undefined`: an account has changed since the session's start. */
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

/** A remembered account of before the session's login says nothing about the session. */
async function looked<A extends ClientDocument | UserDocument>(
  cache: FreshCache<A | undefined>,
  id: string,
  credential: number | null,
): Promise<A | undefined> {
  const fresh = cache.peek(id);
  return fresh?.value === undefined || fresh.value.credential < (credential ?? 0) ? cache.load(id) : fresh.value;
}
