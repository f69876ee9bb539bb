/**
 * Tells those who wait for the log to grow: at once for appends that are made here, by polling for those of another
 * thread or process.
 */

/**
 * How often the log's end is looked at while somebody waits, in ms: another process's append must be seen within 50. A
 * projector on another thread than the appends goes by this, too, unless somebody waits for it (`signals.ts`): what has
 * gathered meanwhile is folded and stored in one go, which costs a third less than group by group.
 */
const POLL_MS = 20;

/** The log's growing end. */
export interface Tail {
  /**
   * Resolves when the log has grown past `position`, the signal is aborted, or the tail is closed; or when its end
   * can't be read: the reader will see why. `own`: only appends made here came lately, so that others' appends may as
   * well be found by the next poll.
   */
  past(position: number, signal: AbortSignal | undefined, own?: boolean): Promise<void>;
  /** The log has grown to `position`. */
  grew(position: number): void;
  /** Looks now, for those who wait. */
  look(): void;
  /** Lets everybody go, now and from now on. */
  close(): void;
}

/** One timer for all who wait, and none while nobody does. It doesn't keep the process alive. */
export function watchTail(end: () => number): Tail {
  const waiting = new Map<() => void, number>();
  let timer: NodeJS.Timeout | undefined;
  let closed = false;
  /** What this process knows of. */
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
