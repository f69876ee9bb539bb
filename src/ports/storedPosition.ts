/**
 * Checks stored positions against their log before use. A position that no event can have, or beyond the log's end,
 * counts as absent. It may come from a faulty server (docs/traps.md), a log that was restored to an earlier time, or a
 * damaged file (docs/design.md#stored-positions).
 */
import { sleep } from '../lib/world.js';
import type { EventStore, Position } from './eventStore.js';

export type ReachedLog = Pick<EventStore, 'isPosition' | 'reaches'>;

/**
 * Number of checks, and milliseconds between them, before data is discarded as beyond the log's end: a cluster's node
 * may lag behind the leader.
 */
export const LOOKS = { most: 8, everyMs: 500 };
const MAX_SHOWN = 40;

/**
 * The fault of a stored position, as text that follows "the stored position"; `undefined` for a valid one.
 * @param looks how often a log that does not reach the position is checked
 * @throws UnavailableError
 */
export async function positionFault(events: ReachedLog, stored: unknown, looks = 1): Promise<string | undefined> {
  if (typeof stored !== 'string' || !events.isPosition(stored)) return 'is none that an event of this log can have';
  for (let attempt = 1; !(await events.reaches(stored)); attempt++) {
    if (attempt >= looks) return 'lies beyond the end of the log';
    await sleep(LOOKS.everyMs);
  }
  return undefined;
}

export interface StoredPosition {
  readonly position: Position | undefined;
  /** The stored value that counts as absent, shortened; null: the position is valid. */
  readonly invalid: string | null;
}

/** Checks the log once. @throws UnavailableError */
export async function storedPosition(events: ReachedLog, stored: unknown): Promise<StoredPosition> {
  const invalid = stored === undefined ? undefined : await positionFault(events, stored);
  if (invalid === undefined) return { position: stored as Position | undefined, invalid: null };
  return { position: undefined, invalid: shownPosition(stored) };
}

/** A stored value, of whatever type, as text for messages: at most 40 characters and an ellipsis. */
export function shownPosition(stored: unknown): string {
  const text = typeof stored === 'string' ? stored : String(JSON.stringify(stored));
  return text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text;
}
