/** Finds the part of the log that holds all events of a time range. Times need not be in log order. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { EventReader } from './reader.js';

/** Positions scanned in one turn, which takes about 5 ms. */
const SLICE = 10_000;

/** Below and above every ISO 8601 time with a four-digit year. */
export const FIRST_TIME = '';
export const LAST_TIME = '~';

/**
 * The first and last position with a time in the range; `undefined` where no event matches. @param stillOpen throws
 * where the log was closed in between
 */
export async function timeBounds(
  reader: Pick<EventReader, 'end' | 'timedWithin'>,
  from: string,
  to: string,
  after: number,
  stillOpen: () => void,
): Promise<{ readonly first: number; readonly last: number } | undefined> {
  const end = reader.end();
  let first = 0;
  for (let at = after; first === 0; at += SLICE) {
    if (at >= end) return undefined;
    first = reader.timedWithin('first', at, Math.min(at + SLICE, end), from, to);
    await nextTurn();
    stillOpen();
  }
  for (let at = end; ; at -= SLICE) {
    const last = reader.timedWithin('last', Math.max(at - SLICE, first - 1), at, from, to);
    if (last > 0) return { first, last };
    await nextTurn();
    stillOpen();
  }
}
