/**
 * Milliseconds between polls: appends of other processes must be noticed within 50. A projector on a worker thread
 * polls too, unless a reader waits for it (`signals.ts`): several groups of appends are cheaper to fold at once.
 */
const POLL_MS = 20;

export interface LogTail {
  /**
   * Resolves when the log grows past `position`, the signal aborts, the tail is closed, or the log's end can't be read.
   * @param own only this thread has appended lately: skips reading the log's end
   */
  past(position: number, signal: AbortSignal | undefined, own?: boolean): Promise<void>;
  grew(position: number): void;
  poll(): void;
  close(): void;
}

/**
 * Watches the log's end. Appends of this thread wake waiting readers at once, other appends by polling. Keeps no
 * process alive.
 */
export function watchLogTail(end: () => number): LogTail {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  let grown = 0;

  function grew(position: number): void {
    grown = Math.max(grown, position);
    wakeBefore(position);
  }

  function wakeBefore(position: number): void {
    for (const [wake, after] of waiting) if (position > after) wake();
  }

  function poll(): void {
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
        timer ??= setInterval(poll, POLL_MS).unref();
      });
    },
    grew,
    poll,
    close() {
      closed = true;
      for (const wake of waiting.keys()) wake();
    },
  };
}
