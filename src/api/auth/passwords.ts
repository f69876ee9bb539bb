/** Each check takes 19 MiB and a core, so few run at once. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hashPassword, verifyPassword } from '../../lib/passwordHash.js';
import { gate } from '../limits/gate.js';

/** The longest queue of checks. */
const PLACES = 500;

export interface Passwords {
  /**
   * The candidate that fits the hash; none without a hash (an unknown user or client), after the same time. `reserve`
   * runs at this check's turn, and may throw.
   * @throws HttpError too_many_requests at a full queue; Error for a malformed hash
   */
  verify(
    hash: string | undefined,
    candidates: readonly string[],
    reserve: () => Promise<void>,
  ): Promise<string | undefined>;
  close(): Promise<void>;
}

/** Leaves one core to the event loop where there are several. */
export function passwords(width: number = Math.max(1, Math.min(3, availableParallelism() - 1))): Passwords {
  const turns = gate(width, PLACES);
  // Hash of an unknown secret. Made at the start, so that the first unknown user takes no longer than the next.
  const dummy = hashPassword(randomBytes(32).toString('base64url'));
  const underWay = new Set<Promise<string | undefined>>();
  return {
    async verify(hash, candidates, reserve) {
      const check = turns.run(async () => {
        await reserve();
        const against = hash ?? (await dummy);
        let right: string | undefined;
        for (const candidate of candidates) {
          if (right === undefined && (await verifyPassword(against, candidate))) right = candidate;
        }
        return hash === undefined ? undefined : right;
      });
      underWay.add(check);
      try {
        return await check;
      } finally {
        underWay.delete(check);
      }
    },
    async close() {
      await Promise.allSettled([dummy, ...underWay]);
    },
  };
}
