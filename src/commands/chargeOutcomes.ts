/**
 * Tells who waits for it that a transaction's charge has been settled, or waits for its buyer, by whatever process: one
 * follower of the log a process.
 */
import { idOf } from '../domain/streamName.js';
import type { EventStore } from '../ports/eventStore.js';
import type { Followers } from '../runtime/supervision/followers.js';

/** One wait for one transaction. */
export interface OutcomeWatch {
  /** Resolves true once an outcome has come into the log since the watch began, false after `timeoutMs` without one. */
  settled(timeoutMs: number): Promise<boolean>;
  /** Ends the watch. */
  end(): void;
}

/** The waiting room. */
export interface ChargeOutcomes {
  /** Begins to watch; an outcome that stood in the log before is not told: read the stream after this call. */
  watch(transactionId: string): OutcomeWatch;
  close(): Promise<void>;
}

/** The events that settle a charge, or say that it waits for its buyer. */
const OUTCOMES = { types: ['PaymentCharged', 'PaymentDeclined', 'PaymentAuthenticationRequired'] };

/**
 * Starts following the log from its present end. A follower that fails goes on behind what it has told, so that no
 * watch misses an outcome. @throws UnavailableError where the log can't be read now
 */
export async function openChargeOutcomes(
  events: EventStore,
  followers: Pick<Followers, 'start'>,
): Promise<ChargeOutcomes> {
  const watches = new Map<string, Set<() => void>>();
  let told = await events.end();

  const follower = followers.start('charge outcomes', async ({ signal, well, onTrouble }) => {
    for await (const batch of events.follow(told, OUTCOMES, { signal, onTrouble })) {
      for (const { stream } of batch.events) for (const tell of watches.get(idOf(stream)) ?? []) tell();
      told = batch.position;
      well();
    }
  });

  return {
    watch(transactionId) {
      let settled = false;
      let wake = (): void => undefined;
      const tell = (): void => {
        settled = true;
        wake();
      };
      const present = watches.get(transactionId) ?? new Set();
      watches.set(transactionId, present.add(tell));
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
          present.delete(tell);
          if (present.size === 0) watches.delete(transactionId);
        },
      };
    },
    close: () => follower.close(),
  };
}
