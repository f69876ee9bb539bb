/** Password checks, each of which takes some memory and a core, so few run at once. */
import { availableParallelism } from 'node:os';
import { costOf, hashOfNobody, PRESENT_COST, verifyPassword } from '../../lib/passwordHash.js';
import { gate } from '../pipeline/gate.js';

/** The longest queue of checks. */
const PLACES = 500;

export interface Passwords {
  /**
   * The candidate that fits the hash; `undefined` without a hash (an unknown user or client). Where none fits, every
   * candidate was checked once at each stored cost, so that the time taken reveals no name. `reserve` runs at this
   * check's turn, and may throw.
   * @throws HttpError too_many_requests at a full queue; Error for a malformed hash
   */
  verify(
    hash: string | undefined,
    candidates: readonly string[],
    reserve: () => Promise<void>,
  ): Promise<string | undefined>;
  close(): Promise<void>;
}

interface PasswordOptions {
  /** The costs of all stored hashes. */
  readonly costs: () => Promise<readonly string[]>;
  /** Checks that run at once. Default: leaves one core to the event loop where there are several. */
  readonly width?: number;
  /** Replacement of the check, for tests that count checks. */
  readonly fits?: typeof verifyPassword;
}

export function passwords({
  costs,
  width = Math.max(1, Math.min(3, availableParallelism() - 1)),
  fits = verifyPassword,
}: PasswordOptions): Passwords {
  const turns = gate(width, PLACES);
  const underWay = new Set<Promise<string | undefined>>();

  const check = async (hash: string | undefined, candidates: readonly string[]): Promise<string | undefined> => {
    const others = new Set([PRESENT_COST, ...(await costs())]);
    if (hash !== undefined) {
      for (const candidate of candidates) if (await fits(hash, candidate)) return candidate;
      others.delete(costOf(hash) ?? '');
    }
    for (const cost of others) for (const candidate of candidates) await fits(hashOfNobody(cost), candidate);
    return undefined;
  };

  return {
    async verify(hash, candidates, reserve) {
      const checked = turns.run(async () => {
        await reserve();
        return check(hash, candidates);
      });
      underWay.add(checked);
      try {
        return await checked;
      } finally {
        underWay.delete(checked);
      }
    },
    async close() {
      await Promise.allSettled(underWay);
    },
  };
}
