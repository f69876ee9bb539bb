/** Checks of passwords and client secrets, a few at once: each takes 19 MiB and a core. */
import { randomBytes } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { hashPassword, verifyPassword } from '../../lib/passwordHash.js';
import { gate } from './gate.js';

/** How many wait at most; the next is refused. */
const PLACES = 500;

export interface Passwords {
  /**
   * The one of `candidates` that the hash was made of. Without a hash (an unknown user or client) the answer is none,
   * after as long. `reserve` runs when it is this check's turn, and may refuse it by throwing.
   * @throws HttpError too_many_requests when too many wait; Error where the hash is none of argon2's; whatever
   * `reserve` throws
   */
  verify(
    hash: string | undefined,
    candidates: readonly string[],
    reserve: () => Promise<void>,
  ): Promise<string | undefined>;
  /** Waits for the checks under way. */
  close(): Promise<void>;
}

/** It leaves one core to the event loop where there are several. */
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
