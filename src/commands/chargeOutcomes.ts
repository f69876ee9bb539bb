/** Waits for a charge's outcome, whichever process records it: one follower of the log in each process. */
import { idOf } from '../domain/streamName.js';
import { after, endTimer } from '../lib/world.js';
import type { EventStore } from '../ports/eventStore.js';
import type { Followers } from '../runtime/supervision/followers.js';

interface OutcomeWatch {
  /** True once an outcome is in the log; false after `timeoutMs`. */
  settled(timeoutMs: number): Promise<boolean>;
  end(): void;
}

export interface ChargeOutcomes {
  /** Watches for outcomes from now on; earlier ones are missed, so read the stream after this call. */
  watch(transactionId: string): OutcomeWatch;
  close(): Promise<void>;
}

const OUTCOMES = { types: ['PaymentCharged', 'PaymentDeclined', 'PaymentAuthenticationRequired'] };

/**
 * Follows the log from its present end. After a failure it resumes where it stopped: no watch misses an outcome.
 * @throws UnavailableError
 */
export async function openChargeOutcomes(
  events: EventStore,
  followers: Pick<Followers, 'start'>,
): Promise<ChargeOutcomes> {
  const watches = new Map<string, Set<() => void>>();
  let passedOn = await events.end();

  const follower = followers.start('charge outcomes', async ({ signal, well, onTrouble }) => {
    for await (const batch of events.follow(passedOn, OUTCOMES, { signal, onTrouble })) {
      for (const { stream } of batch.events) for (const notify of watches.get(idOf(stream)) ?? []) notify();
      passedOn = batch.position;
      well();
    }
  });

  return {
    watch(transactionId) {
      let settled = false;
      let wake = (): void => undefined;
      const notify = (): void => {
        settled = true;
        wake();
      };
      const present = watches.get(transactionId) ?? new Set();
      watches.set(transactionId, present.add(notify));
      return {
        settled: (timeoutMs) =>
          new Promise((resolve) => {
            if (settled) return resolve(true);
            const timer = after(timeoutMs, () => resolve(settled));
            wake = () => {
              endTimer(timer);
              resolve(settled);
            };
          }),
        end() {
          present.delete(notify);
          if (present.size === 0) watches.delete(transactionId);
        },
      };
    },
    close: () => follower.close(),
  };
}
