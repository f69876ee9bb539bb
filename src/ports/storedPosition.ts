/**
 * Positions that were stored, held to the log that they are to be of, before anything is compared with them. One that
 * no event can have, or that lies beyond the log's end, counts as absent, whatever it came from: a server that named it
 * (docs/traps.md), a log that was put back to an earlier time, a damaged file (docs/decisions.md).
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore, Position } from './eventStore.js';

/** The log, as far as it is asked. */
export type ReachedLog = Pick<EventStore, 'isPosition' | 'reaches'>;

/**
 * How often the log is asked before anything is thrown away, and after how long, in ms: a node of a cluster may know
 * less than the leader for a moment.
 */
export const LOOKS = { most: 8, everyMs: 500 };
/** So many characters of what is no position are shown. */
const MAX_SHOWN = 40;

/**
 * Why what is stored as a position can't be one of this log, in words that go on from "the stored position";
 * `undefined`: it can. @param looks how often a log that does not reach it is asked, some time apart. @throws
 * UnavailableError
 */
export async function positionFault(events: ReachedLog, stored: unknown, looks = 1): Promise<string | undefined> {
  if (typeof stored !== 'string' || !events.isPosition(stored)) return 'is none that an event of this log can have';
  for (let look = 1; !(await events.reaches(stored)); look++) {
    if (look >= looks) return 'lies beyond the end of the log';
    await sleep(LOOKS.everyMs);
  }
  return undefined;
}

/** A stored position as far as it counts. */
export interface StoredPosition {
  readonly position: Position | undefined;
  /** What is stored where that counts as absent, shortened; null: nothing is wrong with it. */
  readonly invalid: string | null;
}

/** What is stored, looked at once. `undefined`: nothing is. @throws UnavailableError */
export async function storedPosition(events: ReachedLog, stored: unknown): Promise<StoredPosition> {
  const invalid = stored === undefined ? undefined : await positionFault(events, stored);
  if (invalid === undefined) return { position: stored as Position | undefined, invalid: null };
  return { position: undefined, invalid: shownPosition(stored) };
}

/** What is stored in the place of a position, as it is shown: short, whatever it is. */
export function shownPosition(stored: unknown): string {
  const text = typeof stored === 'string' ? stored : String(JSON.stringify(stored));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
