/** Waiters for projections' checkpoints: one timer serves thousands. */
import type { Position } from '../ports/eventStore.js';

export interface CheckpointWaiters {
  /** Reports that a projection has reached at least `position`, and wakes its waiters. */
  advanced(projection: string, position: Position): void;
  forget(projection: string): void;
  known(projection: string, position: Position): boolean;
  projections(): readonly string[];
  lowest(projection: string): Position | undefined;
  /** Resolves to false after `timeoutMs` or when closed. */
  wait(projection: string, position: Position, timeoutMs: number): Promise<boolean>;
  fail(projections: readonly string[], error: unknown): void;
  close(): void;
}

interface Waiter {
  readonly position: Position;
  readonly deadline: number;
  readonly resolve: (reached: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** Milliseconds between two polls: also the accuracy of timeouts. */
const TICK_MS = 10;

/** @param poll called every `TICK_MS` while there are waiters, to find checkpoints of other processes */
export function checkpointWaiters(poll: () => void): CheckpointWaiters {
  const reached = new Map<string, Position>();
  /** Waiters of each projection, the lowest position first. */
  const waiting = new Map<string, Waiter[]>();
  let timer: NodeJS.Timeout | undefined;

  function known(projection: string, position: Position): boolean {
    const last = reached.get(projection);
    return last !== undefined && last >= position;
  }

  function tick(): void {
    if (waiting.size === 0) return stop();
    poll();
    const now = performance.now();
    for (const [projection, waiters] of waiting) {
      const left = waiters.filter(({ deadline }) => deadline > now);
      if (left.length === waiters.length) continue;
      if (left.length === 0) waiting.delete(projection);
      else waiting.set(projection, left);
      for (const { deadline, resolve } of waiters) if (deadline <= now) resolve(false);
    }
    return undefined;
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
  }

  function end(projections: Iterable<string>, settle: (waiter: Waiter) => void): void {
    for (const projection of projections) {
      const waiters = waiting.get(projection) ?? [];
      waiting.delete(projection);
      waiters.forEach(settle);
    }
  }

  return {
    known,
    advanced(projection, position) {
      if (known(projection, position)) return;
      reached.set(projection, position);
      const waiters = waiting.get(projection) ?? [];
      const still = waiters.findIndex((waiter) => waiter.position > position);
      const woken = waiters.splice(0, still === -1 ? waiters.length : still);
      if (waiters.length === 0) waiting.delete(projection);
      for (const { resolve } of woken) resolve(true);
    },
    forget: (projection) => void reached.delete(projection),
    projections: () => [...waiting.keys()],
    lowest: (projection) => waiting.get(projection)?.[0]?.position,
    wait: (projection, position, timeoutMs) =>
      new Promise((resolve, reject) => {
        const waiters = waiting.get(projection) ?? [];
        // Later waiters nearly always have higher positions, so the search starts at the end.
        const after = waiters.findLastIndex((waiter) => waiter.position <= position);
        waiters.splice(after + 1, 0, { position, deadline: performance.now() + timeoutMs, resolve, reject });
        waiting.set(projection, waiters);
        timer ??= setInterval(tick, TICK_MS);
      }),
    fail: (projections, error) => end(projections, ({ reject }) => reject(error)),
    close() {
      stop();
      end([...waiting.keys()], ({ resolve }) => resolve(false));
    },
  };
}
