/**
 * Refresh tokens, `{session id}.{256 random bits}.{tag}`, of which only the hash is stored. The tag proves that this
 * service made a token: a spent token revokes its session, an invented one costs no look-up.
 */
import { createHash, randomBytes, timingSafeEqual } from 'node:crypto';
import type { KeyedHash } from '../../domain/keyedHash.js';

export interface RefreshToken {
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
