/**
 * Runs a task for each item, at most `limit` concurrently. After a failure, or once `signal` aborts, it starts no
 * further task and waits for the running ones. An abort is no error.
 * @throws the first failure in the order of the runs
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
