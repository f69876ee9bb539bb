/**
 * The turns in which a listener begins its requests (docs/limits.md#overload). A turn of the event loop begins no more
 * requests than it can in `TURN_MS`; the others wait, first come, first served, so that no other work of the loop waits
 * for all of them. A request that would wait for too long is refused at once: its late answer would help nobody, and
 * the work for it would delay the next ones.
 */
import { soon, ticks } from '../../lib/world.js';

/** How long one turn of the event loop may begin requests, in milliseconds. */
const TURN_MS = 8;
/** Most requests that one turn begins: as many as read the read store in one turn. */
const MOST_BEGUN = 100;
/** Number of turns from which a request's wait tells of an overload: one long piece of work holds up a turn or two. */
const OVERLOAD_TURNS = 3;
/** Number of entries of the queue that have been taken at which it is made anew. */
const MOST_TAKEN = 1_000;

interface Waiting {
  readonly begin: () => unknown;
  readonly since: number;
  /** Number of the turn in which it came. */
  readonly during: number;
  /** Number of requests that waited before it. */
  readonly ahead: number;
}

export interface RequestTurns {
  /** Begins a request, now or in a later turn. @returns false where it would wait for too long: it is not begun */
  take(begin: () => unknown): boolean;
  /** Number of requests refused so far. */
  refused(): number;
}

/** @param mostWaitMs the longest wait of a request, in milliseconds; 0: no limit */
export function requestTurns(mostWaitMs: number): RequestTurns {
  const mostWait = mostWaitMs === 0 ? Number.POSITIVE_INFINITY : mostWaitMs;
  let queue: Waiting[] = [];
  /** Number of requests of `queue` that have been taken. */
  let taken = 0;
  /** When the present turn may begin no more requests; `undefined` before the first request of a turn. */
  let turnEnds: number | undefined;
  /** Number of requests begun in the present turn. */
  let begun = 0;
  let turns = 0;
  /** While there is an overload: how long a request waits for each one up to itself, in milliseconds. */
  let msEach = 0;
  let refused = 0;

  const waiting = (): number => queue.length - taken;

  function startTurn(): number {
    turns += 1;
    begun = 0;
    soon(() => {
      turnEnds = undefined;
      if (waiting() > 0) void takeWaiting(startTurn());
      else msEach = 0;
    });
    return (turnEnds = ticks() + TURN_MS);
  }

  async function takeWaiting(end: number): Promise<void> {
    let now = ticks();
    do {
      const { begin, since, during, ahead } = queue[taken] as Waiting;
      taken += 1;
      msEach = turns - during < OVERLOAD_TURNS ? 0 : (now - since) / (ahead + 1);
      begun += 1;
      begin();
      // What follows in a request's handler without waiting counts for the turn, too.
      await Promise.resolve();
      now = ticks();
    } while (waiting() > 0 && begun < MOST_BEGUN && now < end);
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
      } else if ((ahead + 1) * msEach <= mostWait) queue.push({ begin, since: ticks(), during: turns, ahead });
      else {
        refused += 1;
        return false;
      }
      return true;
    },
    refused: () => refused,
  };
}
