/** Passwords and secrets of a file. A plain secret that the hash in the log verifies keeps that hash. */
import { hashPassword, verifyPassword } from '../lib/passwordHash.js';
import { inParallel } from '../lib/async/inParallel.js';
import type { Entry } from '../domain/entry.js';
import type { LogState, Stored } from './logState.js';
import type { GivenSecret, DesiredImport } from './desired.js';

/** Number of concurrent hashes: libuv's threads do the hashing, 4 by default. */
const PARALLEL = 4;

/** Hashes of the secrets, by `user-{id}` and `client-{id}`. */
export type SecretHashes = ReadonlyMap<string, string>;

interface Task {
  readonly key: string;
  readonly given: GivenSecret;
  readonly present: string | undefined;
}

/**
 * Hashes of all secrets of the file; `known`: hashes of an earlier attempt. Ends early, without an error, when `signal`
 * is aborted.
 */
export async function secretHashes(
  desired: DesiredImport,
  log: LogState,
  known: SecretHashes,
  signal?: AbortSignal,
): Promise<SecretHashes> {
  const hashes = new Map(known);
  const tasks: Task[] = [
    ...(desired.users ?? []).map(({ id, secret }) => ({
      key: `user-${id}`,
      given: given(secret),
      present: storedValue(log.entries.user.get(id))?.password_hash,
    })),
    ...(desired.clients ?? []).map(({ id, secret }) => ({
      key: `client-${id}`,
      given: given(secret),
      present: storedValue(log.entries.client.get(id))?.secret_hash,
    })),
  ];
  await inParallel(
    tasks,
    PARALLEL,
    async ({ key, given: secret, present }) => {
      if ('hash' in secret) hashes.set(key, secret.hash);
      else if (present !== undefined && (present === hashes.get(key) || (await verifyPassword(present, secret.plain))))
        hashes.set(key, present);
      else if (!hashes.has(key)) hashes.set(key, await hashPassword(secret.plain));
    },
    signal,
  );
  return hashes;
}

function storedValue<V extends object>(stored: Stored<Entry<V>> | undefined): V | undefined {
  return stored === undefined || stored.state.status === 'none' ? undefined : stored.state.value;
}

function given(secret: GivenSecret | undefined): GivenSecret {
  if (secret === undefined) throw new Error('an entry without a secret passed the checks');
  return secret;
}
