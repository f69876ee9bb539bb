/** Proof of a client's identity. */
import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ClientDocument } from '../../projections/accounts.js';
import { HttpError } from '../pipeline/errors.js';
import type { Passwords } from './passwords.js';
import type { Accounts } from './accountStatus.js';
import type { Throttle } from './throttle.js';

export interface ClientCredentials {
  readonly id: string;
  /** The secret, in each way it may have been meant (see `readBasic`). */
  readonly secrets: readonly string[];
}

/** How long a correct secret is not hashed again. */
const REMEMBERED_MS = 300_000;
const REMEMBERED = 1_000;

/**
 * Authenticates clients. A client refreshes all day with one secret, so a correct one is remembered for some minutes:
 * in memory, as an HMAC under a key of this process, with the client's credential number. So a new secret or a
 * disabling counts at once.
 */
export function clientAuthentication(options: {
  accounts: Accounts;
  passwords: Passwords;
  throttle: Throttle;
  now: () => number;
}): {
  /**
   * The active client with this secret.
   * @throws HttpError authentication_failed, too_many_requests
   */
  authenticate(credentials: ClientCredentials, address: string): Promise<ClientDocument>;
} {
  const { accounts, passwords, throttle, now } = options;
  const key = randomBytes(32);
  const remembered = new LRUCache<string, number>({ max: REMEMBERED });
  const nameOf = (client: ClientDocument, secret: string): string =>
    createHmac('sha256', key)
      .update(JSON.stringify([client.id, client.credential, secret]))
      .digest('base64url');
  const isRemembered = (name: string): boolean => now() - (remembered.get(name) ?? -Infinity) < REMEMBERED_MS;

  return {
    async authenticate({ id, secrets }, address) {
      const client = await accounts.client(id);
      if (
        client !== undefined &&
        client.active &&
        secrets.some((secret) => isRemembered(nameOf(client, secret))) &&
        (await accounts.isCurrent(client))
      )
        return client;
      let right: string | undefined;
      const succeeded = await throttle.attempt({ address }, async (reserve) => {
        right = await passwords.verify(client?.secret_hash, secrets, reserve);
        return right !== undefined && client?.active === true && accounts.isCurrent(client);
      });
      if (!succeeded || client === undefined || right === undefined) throw authenticationFailed();
      remembered.set(nameOf(client, right), now());
      return client;
    },
  };
}

/**
 * The credentials of an HTTP Basic header; `undefined` for another scheme. RFC 6749 2.3.1 wants both form-encoded,
 * which many clients forget, so the secret is taken as it is, too.
 * @throws HttpError authentication_failed where it is malformed
 */
export function readBasic(header: string | undefined): ClientCredentials | undefined {
  // `\S` after the spaces: otherwise many spaces would be split in every possible way.
  const parts = /^basic(?: +(\S+))? *$/i.exec(header ?? '');
  if (parts === null) return undefined;
  const text = Buffer.from(parts[1] ?? '', 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) throw authenticationFailed();
  const secret = text.slice(colon + 1);
  return { id: formDecoded(text.slice(0, colon)), secrets: [...new Set([secret, formDecoded(secret)])] };
}

/** The one answer to every fault of credentials or tokens. */
export function authenticationFailed(): HttpError {
  return new HttpError('authentication_failed', { headers: { 'WWW-Authenticate': 'Bearer' } });
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // Not encoded: the `%` is a character of its own.
    return text;
  }
}
