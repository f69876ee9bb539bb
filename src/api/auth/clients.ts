import { LRUCache } from 'lru-cache';
import type { KeyedHash } from '../../domain/keyedHash.js';
import type { Records } from '../../ports/readStore.js';
import type { ClientDocument } from '../../projections/accounts.js';
import { keyedGate } from '../pipeline/gate.js';
import { HttpError } from '../pipeline/errors.js';
import type { Passwords } from './passwords.js';
import { type Accounts, clientOf } from './accountStatus.js';
import { type Claimant, PLACES, type Throttle } from './throttle.js';

export interface ClientCredentials {
  readonly id: string;
  /** All possible readings of the client's secret (see `readBasic`). */
  readonly secrets: readonly string[];
}

/** Most clients whose proof is remembered in memory. */
const REMEMBERED = 1_000;
const PROOFS = 'client-proof/';

/** Secret that was once right, and the stored hash that it was right for; both as keyed hashes. */
interface Proof {
  readonly of: string;
  readonly secret: string;
}

/**
 * The first right secret of a client is remembered as a keyed hash, for all processes. From then on a secret is checked
 * without the costly hash, so that no number of guesses keeps the right one out. The keyed hash is bound to the stored
 * hash: a new secret counts at once.
 */
export function clientAuthentication(options: {
  accounts: Accounts;
  passwords: Passwords;
  throttle: Throttle;
  records: Records;
  hash: KeyedHash;
}): {
  /** @throws HttpError authentication_failed, too_many_requests */
  authenticate(credentials: ClientCredentials, by: Claimant): Promise<ClientDocument>;
} {
  const { accounts, passwords, throttle, records, hash } = options;
  const remembered = new LRUCache<string, Proof>({ max: REMEMBERED });
  const turns = keyedGate(PLACES);
  const hashOf = ({ id, secret_hash }: ClientDocument, secret?: string): string =>
    hash('secret', JSON.stringify([id, secret_hash, secret]));

  /** The client's remembered proof; `undefined`: no secret was right for this stored hash yet. */
  const proofOf = async (client: ClientDocument): Promise<Proof | undefined> => {
    const of = hashOf(client);
    let proof = remembered.get(client.id);
    if (proof?.of !== of) proof = (await records.get<Proof>(PROOFS + client.id))?.value;
    if (proof?.of !== of) return undefined;
    remembered.set(client.id, proof);
    return proof;
  };
  const fits = (client: ClientDocument, secrets: readonly string[], proof: Proof | undefined): boolean =>
    secrets.some((secret) => proof?.secret === hashOf(client, secret));
  const isActive = (client: ClientDocument | undefined): client is ClientDocument => client?.active === true;

  /** Compares the secrets with the client's stored hash. */
  const verify = async (
    client: ClientDocument | undefined,
    secrets: readonly string[],
    reserve: () => Promise<void>,
  ): Promise<boolean> => {
    const known = isActive(client) ? client : undefined;
    // A check that waited for its turn may find the proof of an earlier check.
    if (known !== undefined && fits(known, secrets, await proofOf(known))) return accounts.isCurrent(known);
    const right = await passwords.verify(known?.secret_hash, secrets, reserve);
    if (known === undefined || right === undefined || !(await accounts.isCurrent(known))) return false;
    const proof: Proof = { of: hashOf(known), secret: hashOf(known, right) };
    await records.put(PROOFS + known.id, proof);
    remembered.set(known.id, proof);
    return true;
  };

  return {
    async authenticate({ id, secrets }, by) {
      let refusal: HttpError | undefined;
      const accept = async (client: ClientDocument | undefined): Promise<boolean> => {
        const proof = isActive(client) ? await proofOf(client) : undefined;
        if (isActive(client) && fits(client, secrets, proof) && (await accounts.isCurrent(client))) return true;
        try {
          refusal = undefined;
          return await throttle.attempt({ clientId: id, by }, async (reserve) => verify(client, secrets, reserve));
        } catch (error) {
          if (!(error instanceof HttpError) || error.code !== 'too_many_requests') throw error;
          refusal = error;
        }
        // Beyond the limits a wrong secret costs no hash, except for a client without a proof: its secrets are checked
        // one at a time.
        if (!isActive(client) || proof !== undefined) return false;
        return turns.run(`${client.id} ${by.sessionId ?? ''}`, async () =>
          verify(client, secrets, async () => undefined),
        );
      };
      const client = await accounts.accepted(async (read) => clientOf(read, id), accept);
      if (client === undefined) throw refusal ?? authenticationFailed();
      return client;
    },
  };
}

/**
 * Credentials of an HTTP Basic header; `undefined` for another scheme. RFC 6749 2.3.1 demands form-encoding, which many
 * clients forget: the secret as it is counts, too.
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

export function authenticationFailed(challenge = 'Bearer'): HttpError {
  return new HttpError('authentication_failed', { headers: { 'WWW-Authenticate': challenge } });
}

/** Names HTTP Basic in a 401 to a request that used it (RFC 6749 5.2). */
export async function challenged<T>(header: string | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof HttpError && error.code === 'authentication_failed' && /^basic\b/i.test(header ?? ''))
      throw authenticationFailed('Basic realm="gift", charset="UTF-8"');
    throw error;
  }
}

function formDecoded(text: string): string {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    // The text has a literal `%`, so it is not form-encoded.
    return text;
  }
}
