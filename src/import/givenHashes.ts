/** Checks that a log-in can verify hashes from another system, and at what cost. */
import { inParallel } from '../lib/async/inParallel.js';
import { costOf, PRESENT_COST, verifyPassword } from '../lib/passwordHash.js';
import type { FaultCollector } from './faults.js';
import type { LogState } from './logState.js';
import type { GivenSecret, DesiredImport } from './desired.js';

const PARALLEL = 4;

/**
 * Limits of a hash's cost in KiB, and in KiB times passes: from the cheapest to the costliest default of known
 * libraries. Below them, passwords can be guessed from a stolen log; above them, every guess at a log-in keeps a core
 * busy.
 */
const LEAST = { memory: 4_096, work: 12_288 };
const MOST = { memory: 131_072, work: 262_144 };
/** Number of different costs, including the present one: a failed log-in takes a check at each. */
const MOST_COSTS = 4;

const PARAMETERS = /^\$argon2id\$v=19\$m=(\d+),t=(\d+),p=(\d+)(\$.*)$/;

const BROKEN = 'is not a whole argon2id hash: no log-in could succeed';
const TOO_CHEAP = `costs too little to guess: m is at least ${LEAST.memory}, m times t at least ${LEAST.work}`;
const TOO_DEAR = `costs too much to check: m is at most ${MOST.memory}, m times t at most ${MOST.work}`;
const TOO_MANY = `has a cost (m, t and p) beyond ${MOST_COSTS} of all users and clients: every failed log-in takes as long as all of them`;

export async function checkGivenHashes(
  { users = [], clients = [] }: DesiredImport,
  log: LogState,
  faults: FaultCollector,
): Promise<void> {
  const arrays = [
    { array: 'users', field: '.password_hash', entries: users },
    { array: 'clients', field: '.secret_hash', entries: clients },
  ] as const;
  const known = new Map<string, string | undefined>();
  const hashes = arrays.flatMap(({ entries }) => entries.flatMap(({ secret }) => hashIn(secret) ?? []));
  await inParallel([...new Set(hashes)], PARALLEL, async (hash) => void known.set(hash, await faultOf(hash)));
  // In the file's order, so that the same file always has the same faults.
  const costs = storedCosts(log);
  for (const { array, field, entries } of arrays)
    for (const { index, secret } of entries) {
      const hash = hashIn(secret);
      if (hash === undefined) continue;
      const fault = known.get(hash) ?? faultOfCost(hash, costs);
      if (fault !== undefined) faults.add(array, index, field, fault);
    }
}

const hashIn = (secret: GivenSecret | undefined): string | undefined =>
  secret !== undefined && 'hash' in secret ? secret.hash : undefined;

function storedCosts({ entries: { user, client } }: LogState): Set<string> {
  const costs = new Set([PRESENT_COST]);
  const note = (hash: string): void => {
    const cost = costOf(hash);
    if (cost !== undefined) costs.add(cost);
  };
  for (const { state } of user.values()) if (state.status !== 'none') note(state.value.password_hash);
  for (const { state } of client.values()) if (state.status !== 'none') note(state.value.secret_hash);
  return costs;
}

async function faultOf(hash: string): Promise<string | undefined> {
  const [, m, t, p, encoded] = PARAMETERS.exec(hash) ?? [];
  const [memory, passes, lanes] = [Number(m), Number(t), Number(p)];
  // RFC 9106: no number is 0 or has a leading 0.
  if (memory < 8 * lanes || [m, t, p].some((number) => number === undefined || number.startsWith('0'))) return BROKEN;
  // Reads salt and hash as a log-in does, with the cheapest parameters.
  const readable = await verifyPassword(`$argon2id$v=19$m=8,t=1,p=1${encoded}`, '').then(
    () => true,
    () => false,
  );
  if (!readable) return BROKEN;
  if (memory < LEAST.memory || memory * passes < LEAST.work) return TOO_CHEAP;
  return memory > MOST.memory || memory * passes > MOST.work ? TOO_DEAR : undefined;
}

/** Adds the cost of a hash to `costs`, unless that makes too many. */
function faultOfCost(hash: string, costs: Set<string>): string | undefined {
  const cost = costOf(hash) ?? '';
  if (!costs.has(cost) && costs.size >= MOST_COSTS) return TOO_MANY;
  costs.add(cost);
  return undefined;
}
