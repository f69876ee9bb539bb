/**
 * Hashes that a file brings along from another system: whether anybody can log in by them, and what each attempt costs
 * everybody else.
 */
import { inParallel } from '../lib/async/inParallel.js';
import { verifyPassword } from '../lib/passwordHash.js';
import type { FaultCollector } from './faults.js';
import type { GivenSecret, WantedImport } from './wanted.js';

/** Checks of an encoding take microseconds each, on libuv's threads. */
const PARALLEL = 4;

/**
 * The dearest hash that is taken, in KiB and in KiB times passes: some half a second. Log-ins are checked a few at
 * once, so a dearer one would keep all others waiting, for as long as anybody likes who knows one username.
 */
const MOST_MEMORY = 262_144;
const MOST_WORK = 1_048_576;

const PARAMETERS = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)(\$.*)$/;

const BROKEN = 'is no whole argon2id hash: nobody could log in by it';
const TOO_DEAR = `costs too much to check: m is at most ${MOST_MEMORY}, m times t at most ${MOST_WORK}`;

/** Adds a fault for each hash that can't be checked, or not while others wait. */
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
  // As RFC 9106 has it: none is 0, and the encoding has one spelling of each number.
  if (memory < 8 * lanes || [m, t, p].some((number) => number === undefined || number.startsWith('0'))) return BROKEN;
  if (memory > MOST_MEMORY || memory * passes > MOST_WORK) return TOO_DEAR;
  // Salt and hash are read by what will read them at every log-in, under the cheapest parameters there are.
  return verifyPassword(`$argon2id$v=19$m=8,t=1,p=1${encoded}`, '').then(
    () => undefined,
    () => BROKEN,
  );
}
