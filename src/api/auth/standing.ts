/** Who stands behind a session: its client and user, as long as nothing has happened to them since it began. */
import type { AccountDocument, ClientDocument, UserDocument } from '../../projections/accounts.js';
import type { ReadModel } from '../../projections/readModel.js';
import { FRESH_MS, type FreshCache, freshCache } from './freshCache.js';
import type { Session } from './rotation.js';

/** The client, and the user unless it is the client's own session. */
export interface Standing {
  readonly client: ClientDocument;
  readonly user?: UserDocument;
}

/** Looks accounts up. Everything throws UnavailableError when the read model can't answer. */
export interface Accounts {
  client(id: string): Promise<ClientDocument | undefined>;
  user(id: string): Promise<UserDocument | undefined>;
  /** Whose name it is, by the name's HMAC. */
  userNamed(usernameHash: string): Promise<UserDocument | undefined>;
  /** Who stands behind the session, as far as memory knows; `undefined`: ask `behind`. */
  known(session: Session): Standing | undefined;
  /** Who stands behind the session, as of `FRESH_MS` ago at most; `undefined` when one of them is inactive or has other credentials than when it began. */
  behind(session: Session): Promise<Standing | undefined>;
}

const NOBODY = { value: undefined };
const CACHED = 10_000;
/** No account has a longer id, so a longer one is not looked up. */
const MAX_ID_LENGTH = 64;

/** The accounts of the read model. `now`: milliseconds. */
export function accounts(model: ReadModel<AccountDocument>, now: () => number): Accounts {
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
    known(session) {
      const itsClient = clients.peek(session.client);
      const itsUser = session.user === null ? NOBODY : users.peek(session.user);
      return itsClient === undefined || itsUser === undefined ? undefined : standing(session, itsClient.value, itsUser.value);
    },
    async behind(session) {
      return standing(session, ...(await Promise.all([looked(clients, session.client), session.user === null ? undefined : looked(users, session.user)])));
    },
  };
}

/** The two as they stand behind the session; `undefined` when they no longer do. */
export function standing(session: Session, client: ClientDocument | undefined, user: UserDocument | undefined): Standing | undefined {
  if (client?.active !== true || client.credential !== session.clientCredential) return undefined;
  if (session.user === null) return { client };
  return user?.active === true && user.credential === session.userCredential ? { client, user } : undefined;
}

async function looked<V>(cache: FreshCache<V>, key: string): Promise<V> {
  const fresh = cache.peek(key);
  return fresh === undefined ? cache.load(key) : fresh.value;
}
