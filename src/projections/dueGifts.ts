/** What is due by the read model `schedule`. */
import type { Condition, ReadStore } from '../ports/readStore.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import { extendedGift, type ScheduleDocument, scheduleProjection } from './schedule.js';
import { timeKey } from './timeKey.js';

const PAGE = 100;

type Schedule = Pick<ReadModel<ScheduleDocument>, 'find'>;

/** The due work of `processors/schedule`, which knows no read model. */
export function dueGifts(
  store: Pick<ReadStore, 'active'>,
  schedule: Pick<ReadModel<ScheduleDocument>, 'find' | 'reached'>,
) {
  async function* due(
    field: keyof ScheduleDocument,
    range: DueRange,
  ): AsyncGenerator<{ readonly id: string; readonly giftId?: string }[], void> {
    for await (const ids of dueIds(schedule, field, range))
      yield ids.map((id) => {
        const giftId = extendedGift(id);
        return giftId === undefined ? { id } : { id, giftId };
      });
  }

  return {
    serves: async () => (await store.active(scheduleProjection.name)) !== undefined,
    reached: schedule.reached,
    toSend: (now: string) => due('send_due', { lte: timeKey(now) }),
    expiring: (range: DueRange) => due('expires_on', range),
  };
}

/** Range of a schedule field: times or days, as the field has them. */
interface DueRange {
  readonly gte?: string;
  readonly lte: string;
}

interface Due {
  readonly id: string;
  readonly key: string;
}

/**
 * The ids of due documents, the longest due first, page by page. Each id comes once, also where other documents leave
 * the index concurrently.
 */
export async function* dueIds(
  schedule: Schedule,
  field: keyof ScheduleDocument,
  due: DueRange,
): AsyncGenerator<readonly string[], void> {
  const find = async (where: Readonly<Record<string, Condition>>, limit: number, by: string = field): Promise<Due[]> =>
    (await schedule.find({ where, sort: [[by, 1]], limit })).map(({ id, body }) => ({ id, key: String(body[field]) }));
  const behind = async ({ id, key }: Due): Promise<Due[]> => {
    const atOnce = await find({ [field]: key, id: { gt: id } }, PAGE, 'id');
    const left = PAGE - atOnce.length;
    return left === 0 ? atOnce : [...atOnce, ...(await find({ [field]: { gt: key, lte: due.lte } }, left))];
  };
  let page = await find({ [field]: due }, PAGE);
  for (let last = page.at(-1); last !== undefined; last = page.at(-1)) {
    yield page.map(({ id }) => id);
    if (page.length < PAGE) return;
    page = await behind(last);
  }
}
