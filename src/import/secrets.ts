/** Plain passwords and secrets of a file, against the hashes in the log: only a changed one makes a new hash. */
import { hashPassword, verifyPassword } from '../lib/passwordHash.js';
import { inParallel } from '../lib/async/inParallel.js';
import type { LogState } from './logState.js';
import type { GivenSecret, WantedImport } from './wanted.js';

/** Hashing uses libuv's threads: 4 by default. */
const PARALLEL = 4;

/** The hash that each user and client is to have, by `user-{id}` and `client-{id}`. */
export type SecretHashes = ReadonlyMap<string, string>;

interface Task {
  readonly key: string;
  readonly given: GivenSecret;
  readonly present: string | undefined;
}

/** Finds or makes the hashes. `known`: those of an earlier attempt. Ends early when `signal` is aborted. */
export async function secretHashes(
  wanted: WantedImport,
  log: LogState,
  known: SecretHashes,
  signal?: AbortSignal,
): Promise<SecretHashes> {
  const hashes = new Map(known);
  const tasks: Task[] = [];
  for (const { id, secret } of wanted.users ?? []) {
    const stored = log.entries.user.get(id)?.state;
    tasks.push({
      key: `user-${id}`,
      given: given(secret),
      present: stored === undefined || stored.status === 'none' ? undefined : stored.value.password_hash,
    });
  }
  for (const { id, secret } of wanted.clients ?? []) {
    const stored = log.entries.client.get(id)?.state;
    tasks.push({
      key: `client-${id}`,
      given: given(secret),
      present: stored === undefined || stored.status === 'none' ? undefined : stored.value.secret_hash,
    });
  }
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

function given(secret: GivenSecret | undefined): GivenSecret {
  if (secret === undefined) throw new Error('an entry without a secret passed the checks');
  return secret;
}
