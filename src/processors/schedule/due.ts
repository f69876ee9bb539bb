import { inParallel } from '../../lib/async/inParallel.js';
import type { Position } from '../../ports/eventStore.js';

const AT_ONCE = 4;

/** A purchase, or one extended gift. `id` names either. */
export interface Due {
  readonly id: string;
  /** The extended gift; absent: all gifts of the purchase with this id. */
  readonly giftId?: string;
}

/** Range of last valid days (UTC), both included. */
export interface DayRange {
  readonly gte: string;
  readonly lte: string;
}

/** Tells which streams to read. It may be behind: each decision is made from the streams. */
export interface DueGifts {
  /**
   * False while the read model is built for the first time: rounds then do nothing, since no process is unready for it.
   * @throws UnavailableError
   */
  serves(): Promise<boolean>;
  /** Whether the read model has reached a position, after waiting for up to `withinMs`. @throws UnavailableError */
  reached(position: Position, withinMs: number): Promise<boolean>;
  /** Pages of purchases whose gifts are to be sent at `now` (ISO 8601, UTC), the longest due first. */
  toSend(now: string): AsyncIterable<readonly Due[]>;
  /** Pages of purchases and extended gifts with their last valid day in the range. */
  expiring(range: DayRange): AsyncIterable<readonly Due[]>;
}

/** Runs `work` for all that is due; a failure does not hold up the rest. @throws the first failure, in the end */
export async function forEachDue(
  pages: readonly AsyncIterable<readonly Due[]>[],
  work: (due: Due) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  const attempt = async (due: Due): Promise<void> => {
    await work(due).catch((error: unknown) => void failures.push(error));
  };
  for (const each of pages) for await (const page of each) await inParallel(page, AT_ONCE, attempt, signal);
  if (failures.length > 0) throw failures[0];
}
