/** Serves thousands of waiters with one timer. */
import type { Position } from '../../../ports/eventStore.js';

export interface CheckpointWaiters {
  /** This process, on any of its threads, has stored this checkpoint. */
  advanced(projection: string, position: Position): void;
  forget(projection: string): void;
  /** False after `timeoutMs` or when closed. @throws errors of `stored` */
  reached(projection: string, position: Position, timeoutMs: number): Promise<boolean>;
  close(): void;
}

export interface Stored {
  /** Changes whenever another connection has written. */
  version(): number;
  checkpoint(projection: string): Position | undefined;
  /** Called for the first waiter of a turn of the event loop, and once more at its end if others came. */
  wanted(): void;
}

interface Waiter {
  readonly position: Position;
  readonly deadline: number;
  readonly resolve: (reached: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** ms between checks for others' writes; also the accuracy of timeouts. */
const LOOK_MS = 10;

export function createCheckpointWaiters(stored: Stored): CheckpointWaiters {
  const known = new Map<string, Position>();
  /** By projection, lowest position first. */
  const waiting = new Map<string, Waiter[]>();
  /** A waiter for these need not read the checkpoint at once. */
  const own = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let announced: 'once' | 'more' | undefined;
  let version: number | undefined;

  function stands(projection: string, position: Position): void {
    const last = known.get(projection);
    if (last !== undefined && last >= position) return;
    known.set(projection, position);
    const waiters = waiting.get(projection);
    if (waiters === undefined) return;
    const still = waiters.findIndex((waiter) => waiter.position > position);
    const woken = still === -1 ? waiters.splice(0) : waiters.splice(0, still);
    if (waiters.length === 0) waiting.delete(projection);
    for (const { resolve } of woken) resolve(true);
  }

  function look(projection: string, position: Position): boolean {
    const checkpoint = stored.checkpoint(projection);
    if (checkpoint === undefined) return false;
    stands(projection, checkpoint);
    return checkpoint >= position;
  }

  function wait(projection: string, waiter: Waiter): void {
    const waiters = waiting.get(projection) ?? [];
    // Earlier checks left this projection out.
    if (waiters.length === 0) version = undefined;
    // Positions nearly always rise.
    const after = waiters.findLastIndex(({ position }) => position <= waiter.position);
    waiters.splice(after + 1, 0, waiter);
    waiting.set(projection, waiters);
    timer ??= setInterval(tick, LOOK_MS);
    announce();
  }

  function announce(): void {
    if (announced !== undefined) {
      announced = 'more';
      return;
    }
    announced = 'once';
    stored.wanted();
    setImmediate(() => {
      // The projector may have looked before the events of later waiters were stored.
      if (announced === 'more') stored.wanted();
      announced = undefined;
    });
  }

  function tick(): void {
    try {
      const now = stored.version();
      if (now !== version) for (const projection of waiting.keys()) look(projection, '');
      version = now;
    } catch (error) {
      endAll(({ reject }) => reject(error));
    }
    expire(performance.now());
    if (waiting.size === 0) stop();
  }

  function expire(now: number): void {
    for (const [projection, waiters] of waiting) {
      const left = waiters.filter(({ deadline }) => deadline > now);
      if (left.length === waiters.length) continue;
      if (left.length === 0) waiting.delete(projection);
      else waiting.set(projection, left);
      for (const { deadline, resolve } of waiters) if (deadline <= now) resolve(false);
    }
  }

  function endAll(end: (waiter: Waiter) => void): void {
    const all = [...waiting.values()];
    waiting.clear();
    for (const waiters of all) for (const waiter of waiters) end(waiter);
  }

  function stop(): void {
    clearInterval(timer);
    timer = undefined;
    version = undefined;
  }

  return {
    advanced(projection, position) {
      own.add(projection);
      stands(projection, position);
    },
    forget(projection) {
      known.delete(projection);
    },
    async reached(projection, position, timeoutMs) {
      const last = known.get(projection);
      if (last !== undefined && last >= position) return true;
      // A waiter for an earlier position: the checkpoint was read just now, and will be soon.
      const first = waiting.get(projection)?.[0];
      const looked = own.has(projection) || (first !== undefined && first.position <= position);
      if ((timeoutMs <= 0 || !looked) && look(projection, position)) return true;
      if (timeoutMs <= 0) return false;
      return new Promise((resolve, reject) => {
        wait(projection, { position, deadline: performance.now() + timeoutMs, resolve, reject });
      });
    },
    close() {
      stop();
      endAll(({ resolve }) => resolve(false));
    },
  };
}
