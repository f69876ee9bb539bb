/** One question at a time, for all who ask meanwhile. */

/**
 * Asks for a fact that grows old at once, such as a log's end. Each caller gets the answer to a question that began
 * after its call; those of one turn of the event loop, and those who come while a question is under way, share the
 * next. A question that fails fails for those who share it, and for no one else.
 */
export function inTurns<T>(ask: () => Promise<T>): () => Promise<T> {
  let running: Promise<unknown> | undefined;
  let next: Promise<T> | undefined;

  async function begin(before: Promise<unknown> | undefined): Promise<T> {
    // After the calls of this turn: what is asked now began after each of them.
    await (before ?? new Promise((resolve) => setImmediate(resolve)));
    const answer = ask();
    running = answer.then(ended, ended);
    next = undefined;
    return answer;
  }

  function ended(): void {
    running = undefined;
  }

  return () => (next ??= begin(running));
}
