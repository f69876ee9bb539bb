import { inParallel } from '../../lib/async/inParallel.js';
import type { Condition } from '../../ports/readStore.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/index.js';

const PAGE = 100;
const AT_ONCE = 4;

export type Schedule = Pick<ReadModel<ScheduleDocument>, 'find'>;

/** Range of a schedule field: times or days, as the field has them. */
export interface DueRange {
  readonly gte?: string;
  readonly lte: string;
}

/** Runs `work` for every due id; a failure does not hold up the others. @throws the first failure, in the end */
export async function forEachDue(
  schedule: Schedule,
  field: keyof ScheduleDocument,
  ranges: readonly DueRange[],
  work: (id: string) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const failures: unknown[] = [];
  const attempt = async (id: string): Promise<void> => {
    await work(id).catch((error: unknown) => void failures.push(error));
  };
  for (const range of ranges)
    for await (const ids of dueIds(schedule, field, range)) await inParallel(ids, AT_ONCE, attempt, signal);
  if (failures.length > 0) throw failures[0];
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
