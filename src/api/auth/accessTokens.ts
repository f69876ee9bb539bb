/** JWTs signed with HS256, naming session and user. A checked signature is remembered until the token expires. */
import { createHash, createSecretKey, type KeyObject } from 'node:crypto';
// Importing the whole package takes twice as long.
import { JOSEError, JWKSNoMatchingKey } from 'jose/errors';
import { SignJWT } from 'jose/jwt/sign';
import { jwtVerify } from 'jose/jwt/verify';
import { LRUCache } from 'lru-cache';
import { atMost } from '../../lib/lruOptions.js';

export interface AccessClaims {
  readonly sessionId: string;
  /** Number of the token pair in its session, from 0. */
  readonly pair: number;
  /** Id of the user; absent in a client's own token. */
  readonly userId?: string;
  /** Seconds since the epoch. */
  readonly expiresAt: number;
}

export interface AccessTokens {
  sign(claims: AccessClaims): Promise<string>;
  remembered(token: string): AccessClaims | undefined;
  /** Claims of a token; `undefined` for a forged or expired token. */
  verify(token: string): Promise<AccessClaims | undefined>;
}

/** Most characters of a token: issued ones have about 300. Longer texts are not hashed. */
const MAX_TOKEN_LENGTH = 2_048;
const REMEMBERED = 20_000;
const MIN_KEY_BYTES = 32;
/** Header `typ`, which distinguishes access tokens from others under the same key. */
const TYPE = 'at+jwt';

/** The first key signs, all verify. @throws Error without a key, or for a key of less than 32 bytes */
export function accessTokens(keys: readonly string[], now: () => number): AccessTokens {
  const known = new Map<string, KeyObject>();
  for (const key of keys) {
    const bytes = Buffer.from(key);
    if (bytes.length < MIN_KEY_BYTES) throw new Error(`a token key has less than ${MIN_KEY_BYTES} bytes`);
    known.set(
      createHash('sha256').update('token key id\0').update(bytes).digest('base64url').slice(0, 8),
      createSecretKey(bytes),
    );
  }
  const [first] = known;
  if (first === undefined) throw new Error('there is no token key');
  const [signingId, signingKey] = first;
  const checked = new LRUCache<string, AccessClaims>(atMost(REMEMBERED));

  const remembered = (token: string): AccessClaims | undefined => {
    const claims = checked.get(token);
    return claims !== undefined && claims.expiresAt * 1000 > now() ? claims : undefined;
  };
  return {
    remembered,
    async sign(claims) {
      const jwt = new SignJWT({ sid: `${claims.sessionId}.${claims.pair}` })
        .setProtectedHeader({ alg: 'HS256', typ: TYPE, kid: signingId })
        .setIssuedAt(Math.floor(now() / 1000))
        .setExpirationTime(claims.expiresAt);
      return (claims.userId === undefined ? jwt : jwt.setSubject(claims.userId)).sign(signingKey);
    },
    async verify(token) {
      const before = remembered(token);
      if (before !== undefined) return before;
      if (token.length > MAX_TOKEN_LENGTH) return undefined;
      try {
        const { payload } = await jwtVerify(
          token,
          ({ kid }) => {
            const key = known.get(kid ?? '');
            if (key === undefined) throw new JWKSNoMatchingKey();
            return key;
          },
          { algorithms: ['HS256'], typ: TYPE, currentDate: new Date(now()) },
        );
        const session = /^([\w-]{22})\.(\d{1,15})$/.exec(String(payload['sid']));
        if (session === null || payload.exp === undefined) return undefined;
        const claims: AccessClaims = {
          sessionId: session[1] ?? '',
          pair: Number(session[2]),
          ...(payload.sub === undefined ? {} : { userId: payload.sub }),
          expiresAt: payload.exp,
        };
        checked.set(token, claims);
        return claims;
      } catch (error) {
        if (error instanceof JOSEError) return undefined;
        throw error;
      }
    },
  };
}
