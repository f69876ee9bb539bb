/** Checks that a log-in can verify hashes from another system, and at what cost. */
import { inParallel } from '../lib/async/inParallel.js';
import { verifyPassword } from '../lib/passwordHash.js';
import type { FaultCollector } from './faults.js';
import type { GivenSecret, WantedImport } from './wanted.js';

const PARALLEL = 4;

/**
 * Limits in KiB, and in KiB times passes. Few log-ins are verified at once: a username with a costlier hash could be used
 * to keep all others waiting.
 */
const MOST_MEMORY = 262_144;
const MOST_WORK = 1_048_576;

const PARAMETERS = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)(\$.*)$/;

const BROKEN = 'is no whole argon2id hash: no log-in could succeed';
const TOO_DEAR = `costs too much to check: m is at most ${MOST_MEMORY}, m times t at most ${MOST_WORK}`;

export async function checkGivenHashes(
  { users = [], clients = [] }: WantedImport,
  faults: FaultCollector,
): Promise<void> {
  const known = new Map<string, Promise<string | undefined>>();
  const check =
    (array: 'users' | 'clients', field: string) =>
    async ({ index, secret }: { readonly index: number; readonly secret: GivenSecret | undefined }): Promise<void> => {
      if (secret === undefined || !('hash' in secret)) return;
      const asked = known.get(secret.hash) ?? faultOf(secret.hash);
      known.set(secret.hash, asked);
      const fault = await asked;
      if (fault !== undefined) faults.add(array, index, field, fault);
    };
  await inParallel(users, PARALLEL, check('users', '.password_hash'));
  await inParallel(clients, PARALLEL, check('clients', '.secret_hash'));
}

async function faultOf(hash: string): Promise<string | undefined> {
  const [, m, t, p, encoded] = PARAMETERS.exec(hash) ?? [];
  const [memory, passes, lanes] = [Number(m), Number(t), Number(p)];
  // RFC 9106: no number is 0 or has a leading 0.
  if (memory < 8 * lanes || [m, t, p].some((number) => number === undefined || number.startsWith('0'))) return BROKEN;
  if (memory > MOST_MEMORY || memory * passes > MOST_WORK) return TOO_DEAR;
  // Reads salt and hash as a log-in does, with the cheapest parameters.
  return verifyPassword(`$argon2id$v=19$m=8,t=1,p=1${encoded}`, '').then(
    () => undefined,
    () => BROKEN,
  );
}
