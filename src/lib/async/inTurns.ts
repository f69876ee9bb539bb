import { nextTurn } from '../world.js';

/**
 * Shares requests whose answers are outdated at once, such as a log's end: each caller gets the answer to a request
 * made after its call. Calls in one turn of the event loop, or during a running request, share the next request and its
 * failure.
 */
export function inTurns<T>(ask: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  async function start(before: Promise<unknown> | undefined): Promise<T> {
    // Waits for all calls of this turn.
    await (before ?? nextTurn());
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
