/** Tells who waits for it that a transaction's charge has been settled, or waits for its buyer, by whatever process: one follower of the log a process. */
import type { Logger } from 'pino';
import { idOf } from '../domain/streamName.js';
import type { EventStore } from '../ports/eventStore.js';

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

/** Starts following the log from its present end. */
export async function openChargeOutcomes(events: EventStore, logger: Logger): Promise<ChargeOutcomes> {
  const watches = new Map<string, Set<() => void>>();
  const abort = new AbortController();

  const from = await events.end();
  const following = (async () => {
    const filter = { types: ['PaymentCharged', 'PaymentDeclined', 'PaymentAuthenticationRequired'] };
    for await (const batch of events.follow(from, filter, { signal: abort.signal })) {
      for (const { stream } of batch.events) for (const tell of watches.get(idOf(stream)) ?? []) tell();
    }
  })().catch((error: unknown) => logger.error({ err: error }, 'following charge outcomes ended: purchases answer only after their whole wait'));

  return {
    watch(transactionId) {
      let told = false;
      let wake = (): void => undefined;
      const tell = (): void => {
        told = true;
        wake();
      };
      const present = watches.get(transactionId) ?? new Set();
      watches.set(transactionId, present.add(tell));
      return {
        settled: (timeoutMs) =>
          new Promise((resolve) => {
            if (told) return resolve(true);
            const timer = setTimeout(() => resolve(told), timeoutMs);
            wake = () => {
              clearTimeout(timer);
              resolve(told);
            };
          }),
        end() {
          present.delete(tell);
          if (present.size === 0) watches.delete(transactionId);
        },
      };
    },
    async close() {
      abort.abort();
      await following;
    },
  };
}
