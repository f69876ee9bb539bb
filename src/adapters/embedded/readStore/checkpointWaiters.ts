/**
 * Who waits for a projection to come somewhere. Thousands may: one timer looks for all of them, and only while there
 * are any.
 */
import type { Position } from '../../../ports/eventStore.js';

/** The waiters of one store. */
export interface Waiters {
  /** This process has written a projection, on whichever thread, which is here now: wakes whom it concerns. */
  advanced(projection: string, position: Position): void;
  /** The projection's checkpoint is gone. */
  forget(projection: string): void;
  /**
   * Resolves true once the projection is at or past `position`, false after `timeoutMs` or when closed. @throws what
   * `stored` throws.
   */
  reached(projection: string, position: Position, timeoutMs: number): Promise<boolean>;
  /** Ends all waiting. */
  close(): void;
}

/** How others' writes are noticed. */
export interface Stored {
  /** Changes whenever another connection has written. */
  version(): number;
  checkpoint(projection: string): Position | undefined;
  /**
   * Told that somebody begins to wait: of all who begin in one turn of the event loop with the first, and once more
   * after the last.
   */
  wanted(): void;
}

interface Waiter {
  readonly position: Position;
  /** On the clock of `performance.now()`. */
  readonly deadline: number;
  readonly resolve: (reached: boolean) => void;
  readonly reject: (error: unknown) => void;
}

/** How often others' writes are looked for, and how exact a timeout is, in ms. */
const LOOK_MS = 10;

/** @param stored what the file says. */
export function createWaiters(stored: Stored): Waiters {
  /** The last known checkpoint of each projection. */
  const known = new Map<string, Position>();
  /** By projection, the lowest position first. */
  const waiting = new Map<string, Waiter[]>();
  /** Written by this process: mostly by it alone, so that others' writes may as well be found by the timer. */
  const own = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  /** In this turn somebody has begun to wait, once it was told or again since. */
  let told: 'once' | 'more' | undefined;
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

  /** @returns whether it is there, as the file says now. */
  function look(projection: string, position: Position): boolean {
    const checkpoint = stored.checkpoint(projection);
    if (checkpoint === undefined) return false;
    stands(projection, checkpoint);
    return checkpoint >= position;
  }

  function wait(projection: string, waiter: Waiter): void {
    const waiters = waiting.get(projection) ?? [];
    // What others wrote while nobody waited for this one was looked at without it.
    if (waiters.length === 0) version = undefined;
    // Positions asked for rise nearly always.
    const after = waiters.findLastIndex(({ position }) => position <= waiter.position);
    waiters.splice(after + 1, 0, waiter);
    waiting.set(projection, waiters);
    timer ??= setInterval(tick, LOOK_MS);
    tell();
  }

  function tell(): void {
    if (told !== undefined) {
      told = 'more';
      return;
    }
    told = 'once';
    stored.wanted();
    setImmediate(() => {
      // Who is told may have looked before what the others wait for was there.
      if (told === 'more') stored.wanted();
      told = undefined;
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
      // Where somebody waits for no more than that already, the file was looked at just now and soon will be again.
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
