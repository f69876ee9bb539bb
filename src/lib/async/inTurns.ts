/**
 * Shares the answers to a question whose answer grows old at once, such as a log's end. Each caller gets the answer to
 * a question asked after its call. Calls of one turn of the event loop, or made while a question is under way, share
 * the next one, and its failure.
 */
export function inTurns<T>(ask: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  async function start(before: Promise<unknown> | undefined): Promise<T> {
    // After all calls of this turn, so that the question is asked after each of them.
    await (before ?? new Promise((resolve) => setImmediate(resolve)));
    const answer = ask();
    running = answer.then(ended, ended);
    next = undefined;
    return answer;
  }

  function ended(): void {
    running = undefined;
  }

  return () => (next ??= start(running));
}
