/** Rounds over gifts by their last valid day: the last day that was done is stored, so that no day is left out. */
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { type DayRange, type Due, type DueGifts, forEachDue } from './due.js';

/** Does the work that is due at `now` (ISO 8601, UTC). @throws the first failure, once all else has been tried */
export type Round = (now: string, signal: AbortSignal) => Promise<void>;

export interface RoundDeps {
  readonly events: EventStore;
  readonly due: Pick<DueGifts, 'expiring' | 'reached' | 'serves'>;
  readonly records: Records;
}

interface RoundPlan {
  /** Key of the record that holds the last day that was done. */
  readonly record: string;
  /** Period of `now`, its day or its hour: each period is done once. */
  periodOf(now: string): string;
  /**
   * Ranges of last valid days that the round covers. `last` is the last day that was done; `undefined` where that is
   * unknown.
   */
  ranges(last: string | undefined, today: string): readonly DayRange[];
  /** @returns `waits` where something must be done later that a round of the ranges from `now` on would not find */
  work(due: Due, now: string): Promise<'waits' | undefined>;
}

const CATCH_UP_MS = 1_000;

/** Last day (UTC) of this log that was done. */
interface Done {
  readonly logId: string;
  readonly day: string;
}

/** @returns a round that does nothing where its period is done, or the read model is behind */
export function expiryRounds({ events, records, due }: RoundDeps, plan: RoundPlan): Round {
  const { logId } = events;
  let done: string | undefined;
  return async (now, signal) => {
    const period = plan.periodOf(now);
    if (done === period || !(await due.serves())) return;
    const today = now.slice(0, 10);
    const stored = (await records.get<Done>(plan.record))?.value;
    const last = stored?.logId === logId ? stored.day : undefined;
    const end = await events.end();
    if (end !== undefined && !(await due.reached(end, CATCH_UP_MS))) return;
    const pages = plan.ranges(last, today).map(due.expiring);
    let waits = false;
    const work = async (one: Due): Promise<void> => {
      if ((await plan.work(one, now)) === 'waits') waits = true;
    };
    await forEachDue(pages, work, signal);
    if (signal.aborted) return;
    if (last !== today && !waits) await records.put(plan.record, { logId, day: today } satisfies Done);
    done = period;
  };
}
