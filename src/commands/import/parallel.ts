/** Bounded concurrency. */

/**
 * Calls `work` for every item, at most `limit` at a time, in order of start. The first failure ends it: what runs is waited for, the rest never starts.
 * An aborted `signal` ends it the same way, without an error: the caller looks at the signal.
 */
export async function inParallel<T>(items: readonly T[], limit: number, signal: AbortSignal | undefined, work: (item: T) => Promise<void>): Promise<void> {
  let next = 0;
  let failed = false;
  const run = async (): Promise<void> => {
    while (!failed && signal?.aborted !== true) {
      const item = items[next++];
      if (item === undefined) return;
      try {
        await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: Math.min(limit, items.length) }, run));
  const failure = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
