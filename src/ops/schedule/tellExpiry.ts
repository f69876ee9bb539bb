/**
 * Says once a day which gifts expire soon, and which have expired (docs/decisions.md#expiry-events). Safe to repeat at
 * any point.
 */
import { giftSource } from '../../commands/giftSource.js';
import { readPurchase } from '../../commands/readStreams.js';
import type { GiftEvent } from '../../domain/gift/events.js';
import type { IssuedGift } from '../../domain/gift/state.js';
import { EXPIRING_DAYS, expiryNews } from '../../domain/gift/expiry.js';
import { transactionStream } from '../../domain/purchase/events.js';
import { inParallel } from '../../lib/async/inParallel.js';
import { daysAfter } from '../../lib/days.js';
import type { Records } from '../../ports/readStore.js';
import { changeGifts, type GiftChangeDeps } from '../../processors/purchase/giftChanges.js';
import { causeOf } from '../../processors/runner/cause.js';
import { extendedGift, type ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import { dueIds } from './dueIds.js';

export interface ExpiryDeps extends GiftChangeDeps {
  readonly schedule: Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>;
  readonly records: Records;
}

/** Losing it costs looking at a month of expiries once more. */
const DONE = 'schedule/expiry';
/** Days, where it is not known what was done. */
const LOOK_BACK = 31;
const AT_ONCE = 4;
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
    const failures: unknown[] = [];
    // The last day once more: what was written at its end may not have been shown yet.
    for (const days of [-1, EXPIRING_DAYS])
      for await (const ids of dueIds(schedule, 'expires_on', {
        gte: daysAfter(last, days),
        lte: daysAfter(today, days),
      }))
        await inParallel(
          ids,
          AT_ONCE,
          async (id) => {
            await tell(deps, id, today).catch((error: unknown) => void failures.push(error));
          },
          signal,
        );
    if (failures.length > 0) throw failures[0];
    if (signal.aborted) return;
    await records.put(DONE, { logId, day: today } satisfies Done);
    done = today;
  };
}

async function tell(deps: ExpiryDeps, id: string, today: string): Promise<void> {
  const giftId = extendedGift(id);
  const decide = (gift: IssuedGift): readonly GiftEvent[] => expiryNews(gift, today);
  if (giftId === undefined) return tellOfPurchase(deps, id, today, decide);
  const { events, writer, mayAct } = deps;
  const source = giftSource(events, giftId, () => {
    throw new Error('a gift was extended and is not there');
  });
  const last = (await source.read()).history.at(-1);
  if (last === undefined) return undefined;
  mayAct();
  await writer.transact(source, { commandId: `expiry-${giftId}-${today}`, cause: causeOf(last) }, ({ gift }) =>
    decide(gift),
  );
  return undefined;
}

async function tellOfPurchase(
  deps: ExpiryDeps,
  id: string,
  today: string,
  decide: (gift: IssuedGift) => readonly GiftEvent[],
): Promise<void> {
  const [bought] = await deps.events.read(transactionStream(id), { limit: 1 });
  const purchase = await readPurchase(deps.events, id);
  if (bought === undefined || purchase.status !== 'charged') return;
  const reason = { commandId: `expiry-${id}-${today}`, cause: causeOf(bought) };
  await changeGifts(deps, purchase, reason, decide, () => undefined);
}
