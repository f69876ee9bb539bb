/** Waits for a charge's outcome, whichever process records it: one follower of the log in each process. */
import { idOf } from '../domain/streamName.js';
import type { EventStore } from '../ports/eventStore.js';
import type { Followers } from '../runtime/supervision/followers.js';

/** One wait for one transaction. */
export interface OutcomeWatch {
  /** True once an outcome has come into the log since the watch started, false after `timeoutMs` without one. */
  settled(timeoutMs: number): Promise<boolean>;
  /** Ends the watch. */
  end(): void;
}

export interface ChargeOutcomes {
  /** Starts a watch, which does not see earlier outcomes: read the stream after this call. */
  watch(transactionId: string): OutcomeWatch;
  close(): Promise<void>;
}

/** The events that settle a charge, or say that it waits for its buyer. */
const OUTCOMES = { types: ['PaymentCharged', 'PaymentDeclined', 'PaymentAuthenticationRequired'] };

/**
 * Follows the log from its present end. A follower that fails goes on behind what it has passed on, so that no watch
 * misses an outcome. @throws UnavailableError
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
            const timer = setTimeout(() => resolve(settled), timeoutMs);
            wake = () => {
              clearTimeout(timer);
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
