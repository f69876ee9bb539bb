/** Bounded concurrency: the one way in which many things are done side by side. */

/**
 * Calls `work` for every item, at most `limit` at a time, in order of start. The first failure ends it: nothing new is
 * begun, what runs is waited for. An aborted `signal` ends it the same way, without an error: the caller looks at the
 * signal.
 * @throws what failed; of several the one that comes first in the order of the runs
 */
export async function inParallel<T>(
  items: Iterable<T>,
  limit: number,
  work: (item: T) => Promise<void>,
  signal?: AbortSignal,
): Promise<void> {
  const left = items[Symbol.iterator]();
  let failed = false;
  const run = async (): Promise<void> => {
    while (!failed && signal?.aborted !== true) {
      const { value: item, done } = left.next();
      if (done === true) return;
      try {
        await work(item);
      } catch (error) {
        failed = true;
        throw error;
      }
    }
  };
  const outcomes = await Promise.allSettled(Array.from({ length: limit }, run));
  const failure = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failure !== undefined) throw failure.reason;
}
