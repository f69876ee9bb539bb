/** What is due by the read model `schedule`. */
import type { Condition, ReadStore } from '../ports/readStore.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { extendedGift, type ScheduleDocument, scheduleProjection } from './schedule.js';
import { timeKey } from './timeKey.js';

const PAGE = 100;

type Schedule = Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>;

/** What is due, for `processors/schedule`, which knows no read model. */
export function dueGifts(store: Pick<ReadStore, 'active'>, schedule: Schedule) {
  return {
    serves: async () => (await store.active(scheduleProjection.name)) !== undefined,
    reached: schedule.reached,
    toSend: (now: string) => due(schedule, 'send_due', { lte: timeKey(now) }),
    expiring: (range: DueRange) => due(schedule, 'expires_on', range),
  };
}

/** Range of a schedule field: times or days, as the field has them. */
interface DueRange {
  readonly gte?: string;
  readonly lte: string;
}

interface Found {
  readonly id: string;
  readonly key: string;
}

/**
 * Due purchases and extended gifts, the longest due first, page by page. Each comes once, also where other documents
 * leave the index concurrently.
 */
async function* due(
  schedule: Schedule,
  field: keyof ScheduleDocument,
  range: DueRange,
): AsyncGenerator<readonly { readonly id: string; readonly giftId?: string }[], void> {
  const find = async (
    where: Readonly<Record<string, Condition>>,
    limit: number,
    by: string = field,
  ): Promise<Found[]> =>
    (await schedule.find({ where, sort: [[by, 1]], limit })).map(({ id, body }) => ({ id, key: String(body[field]) }));
  const behind = async ({ id, key }: Found): Promise<Found[]> => {
    const atOnce = await find({ [field]: key, id: { gt: id } }, PAGE, 'id');
    const left = PAGE - atOnce.length;
    return left === 0 ? atOnce : [...atOnce, ...(await find({ [field]: { gt: key, lte: range.lte } }, left))];
  };
  let page = await find({ [field]: range }, PAGE);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page.map(({ id }) => {
      const giftId = extendedGift(id);
      return giftId === undefined ? { id } : { id, giftId };
    });
    if (page.length < PAGE) return;
    page = await behind(last);
  }
}
