/** Wakes waiters when the log grows: at once for appends of this thread, by polling for those of others. */

/**
 * Polling interval while somebody waits, in ms: an append of another process must be seen within 50. A projector on a
 * worker thread polls too, unless a reader waits for it (`signals.ts`): folding several groups of appends at once costs
 * less.
 */
const POLL_MS = 20;

export interface LogTail {
  /**
   * Resolves when the log has grown past `position`, the signal is aborted, the tail is closed, or the log's end can't
   * be read.
   * @param own only this thread has appended lately, so that the next poll may find appends of others
   */
  past(position: number, signal: AbortSignal | undefined, own?: boolean): Promise<void>;
  grew(position: number): void;
  look(): void;
  close(): void;
}

/** One timer for all waiters, and none without them. It doesn't keep the process alive. */
export function watchLogTail(end: () => number): LogTail {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** The end as this thread knows it. */
  let grown = 0;

  function grew(position: number): void {
    grown = Math.max(grown, position);
    wakeBefore(position);
  }

  function wakeBefore(position: number): void {
    for (const [wake, after] of waiting) if (position > after) wake();
  }

  function look(): void {
    if (waiting.size === 0) return;
    let position: number;
    try {
      position = end();
    } catch {
      position = Number.POSITIVE_INFINITY;
    }
    wakeBefore(position);
  }

  return {
    async past(position, signal, own = false) {
      if (closed || signal?.aborted || grown > position || (!own && end() > position)) return;
      await new Promise<void>((resolve) => {
        function wake(): void {
          waiting.delete(wake);
          signal?.removeEventListener('abort', wake);
          if (waiting.size === 0) {
            clearInterval(timer);
            timer = undefined;
          }
          resolve();
        }
        waiting.set(wake, position);
        signal?.addEventListener('abort', wake);
        timer ??= setInterval(look, POLL_MS).unref();
      });
    },
    grew,
    look,
    close() {
      closed = true;
      for (const wake of waiting.keys()) wake();
    },
  };
}
