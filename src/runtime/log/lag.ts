/** Measures how far a fold is behind the log's present end, so that a stuck fold can't look healthy. */
import { clockMs } from '../../lib/clock.js';
import { after, endTimer } from '../../lib/world.js';
import type { EventStore, Position } from '../../ports/eventStore.js';
import { storedPosition } from '../../ports/storedPosition.js';

interface Lag {
  /** Number of events that the fold has not processed, at most `LagOptions.count`. */
  readonly events: number;
  /** Age of the oldest event that the fold has not processed; `undefined`: no event was found in time. */
  readonly seconds: number | undefined;
  /** Whether all those events were counted; false: time ran out, or `LagOptions.count` was reached. */
  readonly whole: boolean;
}

export interface LagOptions {
  /** Most events to count; default 10,000. */
  readonly count?: number;
  /** Most milliseconds to count for; default 200. */
  readonly withinMs?: number;
  /** Most milliseconds to look for the oldest event, without which nobody notices the lag; default 1,000. */
  readonly findMs?: number;
  readonly now?: () => number;
}

const COUNT = 10_000;
const WITHIN_MS = 200;
const FIND_MS = 1_000;
const BATCH = 1_000;

/**
 * Counts the events after a stored position. An invalid position counts as absent. Without lag this costs one read of
 * the log's end.
 * @throws UnavailableError
 */
export async function lagBehind(
  events: EventStore,
  stored: Position | undefined,
  types: readonly string[],
  options: LagOptions = {},
): Promise<Lag> {
  const { count = COUNT, withinMs = WITHIN_MS, findMs = FIND_MS, now = clockMs } = options;
  const end = await events.end();
  if (end === undefined || stored === end) return { events: 0, seconds: 0, whole: true };
  const { position } = await storedPosition(events, stored);
  if (position !== undefined && position >= end) return { events: 0, seconds: 0, whole: true };
  const late = new AbortController();
  let waiting = 0;
  let oldest: number | undefined;
  let whole = false;
  let over = false;
  const timer = after(withinMs, () => {
    over = true;
    if (oldest !== undefined) late.abort();
  });
  const last = after(findMs, () => late.abort());
  try {
    for await (const batch of events.readAll(position, { types }, { batchSize: BATCH, signal: late.signal })) {
      oldest ??= batch.events[0] === undefined ? undefined : Date.parse(batch.events[0].at);
      waiting += batch.events.length;
      whole = batch.caughtUp;
      if (whole || waiting >= count || (over && oldest !== undefined)) break;
    }
  } finally {
    endTimer(timer);
    endTimer(last);
  }
  const seconds = oldest === undefined ? (whole ? 0 : undefined) : Math.max(0, (now() - oldest) / 1000);
  return { events: Math.min(waiting, count), seconds, whole };
}
