import { createHmac, randomBytes } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import type { ClientDocument } from '../../projections/accounts.js';
import { HttpError } from '../pipeline/errors.js';
import type { Passwords } from './passwords.js';
import type { Accounts } from './accountStatus.js';
import type { Throttle } from './throttle.js';

export interface ClientCredentials {
  readonly id: string;
  /** All possible readings (see `readBasic`). */
  readonly secrets: readonly string[];
}

/** How long a correct secret stays remembered. */
const REMEMBERED_MS = 300_000;
const REMEMBERED = 1_000;

/**
 * A correct secret is remembered in memory, as an HMAC under a key of this process, with the client's credential
 * number: clients refresh often, and a new secret or a disabling still counts at once.
 */
export function clientAuthentication(options: {
  accounts: Accounts;
  passwords: Passwords;
  throttle: Throttle;
  now: () => number;
}): {
  /** @throws HttpError authentication_failed, too_many_requests */
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

  const isAuthentic = async (
    client: ClientDocument | undefined,
    secrets: readonly string[],
    address: string,
  ): Promise<boolean> => {
    if (
      client?.active === true &&
      secrets.some((secret) => isRemembered(nameOf(client, secret))) &&
      (await accounts.isCurrent(client))
    )
      return true;
    let right: string | undefined;
    const succeeded = await throttle.attempt({ address }, async (reserve) => {
      right = await passwords.verify(client?.secret_hash, secrets, reserve);
      return right !== undefined && client?.active === true && accounts.isCurrent(client);
    });
    if (!succeeded || client === undefined || right === undefined) return false;
    remembered.set(nameOf(client, right), now());
    return true;
  };

  return {
    async authenticate({ id, secrets }, address) {
      const client = await accounts.accepted(
        async () => accounts.client(id),
        async (found) => isAuthentic(found, secrets, address),
      );
      if (client === undefined) throw authenticationFailed();
      return client;
    },
  };
}

/**
 * `undefined` for another scheme. RFC 6749 2.3.1 demands form-encoding, which many clients forget: the secret counts as
 * it stands, too.
 * @throws HttpError authentication_failed for a malformed header
 */
export function readBasic(header: string | undefined): ClientCredentials | undefined {
  // `\S` after the spaces avoids quadratic backtracking.
  const parts = /^basic(?: +(\S+))? *$/i.exec(header ?? '');
  if (parts === null) return undefined;
  const text = Buffer.from(parts[1] ?? '', 'base64').toString('utf8');
  const colon = text.indexOf(':');
  if (colon < 0) throw authenticationFailed();
  const secret = text.slice(colon + 1);
  return { id: formDecoded(text.slice(0, colon)), secrets: [...new Set([secret, formDecoded(secret)])] };
}

export function authenticationFailed(): HttpError {
  return new HttpError('authentication_failed', { headers: { 'WWW-Authenticate': 'Bearer' } });
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // A literal `%`.
    return text;
  }
}
