/** Rounds over gifts by their last valid day: the last day that was done is stored, so that no day is left out. */
import type { EventStore } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';
import { type DueRange, forEachDue } from './dueIds.js';

/** Does the work that is due at `now` (ISO 8601, UTC). @throws the first failure, once all else has been tried */
export type Round = (now: string, signal: AbortSignal) => Promise<void>;

export interface RoundDeps {
  readonly events: EventStore;
  readonly schedule: Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>;
  readonly records: Records;
}

export interface RoundPlan {
  /** Key of the record that holds the last day that was done. */
  readonly record: string;
  /** Period of `now`, its day or its hour: each period is done once. */
  periodOf(now: string): string;
  /**
   * Ranges of last valid days that the round covers. `last` is the last day that was done; `undefined` where that is
   * unknown.
   */
  ranges(last: string | undefined, today: string): readonly DueRange[];
  work(id: string, now: string): Promise<void>;
}

const CATCH_UP_MS = 1_000;

/** Last day (UTC) of this log that was done. */
interface Done {
  readonly logId: string;
  readonly day: string;
}

/** @returns a round that does nothing where its period is done, or the read model is behind */
export function expiryRounds({ events, records, schedule }: RoundDeps, plan: RoundPlan): Round {
  const { logId } = events;
  let done: string | undefined;
  return async (now, signal) => {
    const period = plan.periodOf(now);
    if (done === period) return;
    const today = now.slice(0, 10);
    const stored = (await records.get<Done>(plan.record))?.value;
    const last = stored?.logId === logId ? stored.day : undefined;
    const end = await events.end();
    if (end !== undefined && !(await schedule.reached(end, CATCH_UP_MS))) return;
    await forEachDue(schedule, 'expires_on', plan.ranges(last, today), async (id) => plan.work(id, now), signal);
    if (signal.aborted) return;
    if (last !== today) await records.put(plan.record, { logId, day: today } satisfies Done);
    done = period;
  };
}
