/**
 * Says once a day which gifts expire soon, and which have expired (docs/decisions.md#expiry-events). Safe to repeat at
 * any point.
 */
import { EXPIRING_DAYS, expiryNews } from '../../domain/gift/expiry.js';
import { daysAfter } from '../../lib/days.js';
import type { Records } from '../../ports/readStore.js';
import type { GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import { changeDueGifts } from './changeDueGifts.js';
import { forEachDue } from './dueIds.js';

export interface ExpiryDeps extends GiftChangeDeps {
  readonly schedule: Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>;
  readonly records: Records;
}

/** Losing it costs looking at a month of expiries once more. */
const DONE = 'schedule/expiry';
/** Days, where it is not known what was done. */
const LOOK_BACK = 31;
const CATCH_UP_MS = 1_000;

/** The last day (UTC) that was done, of this log. */
interface Done {
  readonly logId: string;
  readonly day: string;
}

/** @returns one round: nothing where the day is done, or the read model is behind. @throws the first failure, in the end */
export function expiryRounds(deps: ExpiryDeps): (now: string, signal: AbortSignal) => Promise<void> {
  const { events, records, schedule } = deps;
  const { logId } = events;
  let done: string | undefined;
  return async (now, signal) => {
    const today = now.slice(0, 10);
    if (done === today) return;
    const stored = (await records.get<Done>(DONE))?.value;
    const last = stored?.logId === logId ? stored.day : daysAfter(today, -LOOK_BACK);
    const end = await events.end();
    if (end !== undefined && !(await schedule.reached(end, CATCH_UP_MS))) return;
    await forEachDue(
      schedule,
      'expires_on',
      // The last day once more: what was written at its end may not have been shown yet.
      [-1, EXPIRING_DAYS].map((days) => ({ gte: daysAfter(last, days), lte: daysAfter(today, days) })),
      async (id) => changeDueGifts(deps, id, { name: 'expiry', at: today }, (gift) => expiryNews(gift, today)),
      signal,
    );
    if (signal.aborted) return;
    await records.put(DONE, { logId, day: today } satisfies Done);
    done = today;
  };
}
