/** Sessions of logins, stored as records. Losing them only logs people out. */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { KeyedHash } from '../../domain/keyedHash.js';
import { SESSIONS } from '../../domain/recordKeys.js';
import { randomBytes } from '../../lib/world.js';
import type { Records, StoredRecord } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { ClientDocument, UserDocument } from '../../projections/accounts.js';
import type { AccessClaims, AccessTokens } from './accessTokens.js';
import { freshCache } from './freshCache.js';
import { decideRefresh, type Session } from './rotation.js';

export interface Lifetimes {
  readonly access: number;
  readonly refresh: number;
  /** Seconds from the login to the session's end. */
  readonly session: number;
}

export interface TokenPair {
  readonly accessToken: string;
  readonly expiresIn: number;
  /** Absent for a client's own session. */
  readonly refreshToken?: string;
}

export interface TokenHolder {
  readonly sessionId: string;
  readonly client: string;
}

/** Every method throws UnavailableError without the records. */
export interface Sessions {
  /** Starts a session and returns its first pair. Without a user: the client's own session. */
  start(client: ClientDocument, user?: UserDocument): Promise<TokenPair>;
  /**
   * Session and client of an access or refresh token, also of a spent one; `undefined`: the token has no session, or
   * its session has ended.
   */
  holder(token: string): Promise<TokenHolder | undefined>;
  /**
   * The next pair; `undefined` for a refused token. A spent token whose grace is over ends its session. `isValid`:
   * whether the session's client and user are still valid.
   */
  refresh(
    token: string,
    client: string,
    isValid: (session: Session) => Promise<boolean>,
  ): Promise<TokenPair | undefined>;
  /**
   * Ends the session of an access or refresh token, also of a spent one; other processes notice within `FRESH_MS`. An
   * unknown token, or an access token that has expired, ends nothing.
   * @returns false for a token of another client, which ends nothing either
   */
  revoke(token: string, client: string): Promise<boolean>;
  /** Remembered session of a token, at most `FRESH_MS` old; `undefined`: call `use`. */
  inUse(claims: AccessClaims): Session | undefined;
  /** Session of a token, at most `FRESH_MS` old; `undefined`: the session has ended. */
  use(claims: AccessClaims): Promise<Session | undefined>;
}

const CACHED = 10_000;
/** Most attempts to store a session: more lost compare-and-sets in a row are a fault of the store. */
const MAX_TURNS = 1_000;

export function sessions(options: {
  records: Records;
  tokens: AccessTokens;
  hash: KeyedHash;
  ttl: Lifetimes;
  now: () => number;
}): Sessions {
  const { records, tokens, hash, ttl, now } = options;
  const cache = freshCache<StoredRecord<Session> | undefined>({
    max: CACHED,
    now,
    look: async (key) => records.get<Session>(key),
  });

  /** End of a session in whole seconds, as in a token's `exp`: no token outlives its session. */
  const sessionEnd = (startedAt: number): number => Math.floor(startedAt / 1000) + ttl.session;
  const accessExpiry = (startedAt: number): number =>
    Math.min(Math.floor(now() / 1000) + ttl.access, sessionEnd(startedAt));
  const refreshExpiry = (startedAt: number): number =>
    Math.min(now() + ttl.refresh * 1000, sessionEnd(startedAt) * 1000);
  const store = async (id: string, session: Session, expected: number): Promise<boolean> => {
    const key = keyOf(id);
    const expiresAt = Math.max(...session.live.map((token) => token.expiresAt), accessExpiry(session.startedAt) * 1000);
    const version = await records.put(key, session, { expected, expiresAt });
    if (version === undefined) cache.forget(key);
    else cache.set(key, { key, value: session, version, expiresAt });
    return version !== undefined;
  };
  const pairOf = async (id: string, session: Session, refresh?: RefreshToken): Promise<TokenPair> => {
    const expiresAt = accessExpiry(session.startedAt);
    const claims = {
      sessionId: id,
      pair: session.pair,
      expiresAt,
      ...(session.user === null ? {} : { userId: session.user }),
    };
    return {
      accessToken: await tokens.sign(claims),
      expiresIn: expiresAt - Math.floor(now() / 1000),
      ...(refresh === undefined ? {} : { refreshToken: refresh.text }),
    };
  };

  const sessionOf = async (text: string): Promise<string | undefined> =>
    (readRefreshToken(text, hash) ?? (await tokens.verify(text)))?.sessionId;

  return {
    async start(client, user) {
      const id = randomBytes(16).toString('base64url');
      const startedAt = now();
      const refresh = user === undefined ? undefined : newRefreshToken(id, hash);
      const session: Session = {
        client: client.id,
        clientCredential: client.credential,
        user: user?.id ?? null,
        userCredential: user?.credential ?? null,
        startedAt,
        pair: 0,
        live: refresh === undefined ? [] : [{ hash: refresh.hash, expiresAt: refreshExpiry(startedAt) }],
        spent: [],
      };
      if (!(await store(id, session, 0))) throw new Error('a new session id is taken');
      return pairOf(id, session, refresh);
    },

    async holder(text) {
      const sessionId = await sessionOf(text);
      const record = sessionId === undefined ? undefined : await records.get<Session>(keyOf(sessionId));
      return record === undefined || sessionId === undefined ? undefined : { sessionId, client: record.value.client };
    },

    async refresh(text, client, isValid) {
      const token = readRefreshToken(text, hash);
      if (token === undefined) return undefined;
      const key = keyOf(token.sessionId);
      for (let turn = 0; turn < MAX_TURNS; turn += 1) {
        const record = await records.get<Session>(key);
        if (record === undefined) return undefined;
        const successor = newRefreshToken(token.sessionId, hash);
        const decision = decideRefresh(record.value, {
          hash: token.hash,
          client,
          now: now(),
          successor: { hash: successor.hash, expiresAt: refreshExpiry(record.value.startedAt) },
        });
        if (decision.kind === 'revoke') {
          await records.delete(key);
          cache.forget(key);
        }
        if (decision.kind !== 'rotate' || !(await isValid(record.value))) return undefined;
        if (await store(token.sessionId, decision.next, record.version))
          return pairOf(token.sessionId, decision.next, successor);
      }
      throw new UnavailableError('a session could not be stored');
    },

    async revoke(text, client) {
      const sessionId = await sessionOf(text);
      if (sessionId === undefined) return true;
      const key = keyOf(sessionId);
      const record = await records.get<Session>(key);
      if (record === undefined) return true;
      if (record.value.client !== client) return false;
      await records.delete(key);
      cache.forget(key);
      return true;
    },

    inUse(claims) {
      const session = cache.peek(keyOf(claims.sessionId))?.value?.value;
      return session !== undefined && mayAct(session, claims) ? session : undefined;
    },

    async use(claims) {
      const key = keyOf(claims.sessionId);
      const known = cache.peek(key);
      let record = known === undefined ? await cache.load(key) : known.value;
      if (record !== undefined && record.value.pair < claims.pair) {
        // Another process may have issued this pair since the session was read.
        cache.forget(key);
        record = await cache.load(key);
      }
      return record !== undefined && mayAct(record.value, claims) ? record.value : undefined;
    },
  };
}

function mayAct(session: Session, claims: AccessClaims): boolean {
  return session.user === (claims.userId ?? null) && claims.pair <= session.pair;
}

function keyOf(sessionId: string): string {
  return SESSIONS + sessionId;
}

/**
 * A refresh token, `{session id}.{256 random bits}.{tag}`, of which only the hash is stored. The tag proves that this
 * service made a token: a spent token revokes its session, an invented one costs no look-up.
 */
interface RefreshToken {
  /** The token as the client has it, which is secret. */
  readonly text: string;
  readonly sessionId: string;
  /** SHA-256 of the text, base64url. */
  readonly hash: string;
}

export function newRefreshToken(sessionId: string, tag: KeyedHash): RefreshToken {
  const body = `${sessionId}.${randomBytes(32).toString('base64url')}`;
  return made(sessionId, `${body}.${tag('refresh', body)}`);
}

/** The token of a text; `undefined` for a forged one. */
export function readRefreshToken(text: string, tag: KeyedHash): RefreshToken | undefined {
  const parts = /^(([\w-]{22})\.[\w-]{43})\.([\w-]{22})$/.exec(text);
  const [, body = '', sessionId = '', given = ''] = parts ?? [];
  return parts !== null && timingSafeEqual(Buffer.from(tag('refresh', body)), Buffer.from(given))
    ? made(sessionId, text)
    : undefined;
}

function made(sessionId: string, text: string): RefreshToken {
  return { text, sessionId, hash: createHash('sha256').update(text).digest('base64url') };
}
