/**
 * The turns in which a listener begins its requests (docs/limits.md#overload). A turn of the event loop begins no more
 * requests than it can in `TURN_MS`; the others wait, first come, first served, so that no other work of the loop waits
 * for all of them. A request that would wait for too long is refused at once: its late answer would help nobody, and
 * the work for it would delay the next ones.
 */
import { soon, ticks } from '../../lib/world.js';

/** How long one turn of the event loop may begin requests, in milliseconds. */
const TURN_MS = 8;
/** Most requests that one turn begins. */
const MOST_BEGUN = 100;
/** Number of turns in a row that leave requests waiting from which it is an overload, and no long piece of work. */
const OVERLOAD_TURNS = 3;
/** Share of the latest turn in the time that a request takes. */
const LATEST = 0.2;
/** Number of entries of the queue that have been taken at which it is made anew. */
const MOST_TAKEN = 1_000;

interface RequestTurns {
  /** Begins a request, now or in a later turn. @returns false where it would wait for too long: it is not begun */
  take(begin: () => unknown): boolean;
  /** Number of requests refused so far. */
  refused(): number;
}

/** @param mostWaitMs the longest wait of a request, in milliseconds; 0: no limit */
export function requestTurns(mostWaitMs: number): RequestTurns {
  const mostWait = mostWaitMs === 0 ? Number.POSITIVE_INFINITY : mostWaitMs;
  let queue: (() => unknown)[] = [];
  /** Number of requests of `queue` that have been taken. */
  let taken = 0;
  /** When the present turn may begin no more requests; `undefined` before the first request of a turn. */
  let turnEnds: number | undefined;
  /** Number of requests begun in the present turn. */
  let begun = 0;
  /** Number of turns in a row that have left requests waiting. */
  let busyTurns = 0;
  /** Milliseconds of such turns for each request that they began. */
  let msEach = 0;
  let refused = 0;

  const waiting = (): number => queue.length - taken;

  function startTurn(): number {
    const started = ticks();
    begun = 0;
    soon(() => {
      turnEnds = undefined;
      if (waiting() === 0) {
        busyTurns = 0;
        return;
      }
      const took = (ticks() - started) / begun;
      msEach = busyTurns === 0 ? took : LATEST * took + (1 - LATEST) * msEach;
      busyTurns += 1;
      void takeWaiting(startTurn());
    });
    return (turnEnds = started + TURN_MS);
  }

  async function takeWaiting(end: number): Promise<void> {
    do {
      begun += 1;
      queue[taken++]?.();
      // What follows in a request's handler without waiting counts for the turn, too.
      await Promise.resolve();
    } while (waiting() > 0 && begun < MOST_BEGUN && ticks() < end);
    if (waiting() > 0 && taken < MOST_TAKEN) return;
    queue = queue.slice(taken);
    taken = 0;
  }

  return {
    take(begin) {
      const ahead = waiting();
      if (ahead === 0 && ticks() < (turnEnds ?? startTurn()) && begun < MOST_BEGUN) {
        begun += 1;
        begin();
      } else if (busyTurns < OVERLOAD_TURNS || ahead * msEach <= mostWait) queue.push(begin);
      else {
        refused += 1;
        return false;
      }
      return true;
    },
    refused: () => refused,
  };
}
