import type { Condition } from '../../ports/readStore.js';
import type { ScheduleDocument } from '../../projections/schedule.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';

const PAGE = 100;

interface Due {
  readonly id: string;
  readonly key: string;
}

/**
 * The ids of what is due, the longest due first, page by page: each once, also where others leave the index meanwhile.
 */
export async function* dueIds(
  schedule: Pick<ReadModel<ScheduleDocument>, 'find'>,
  field: keyof ScheduleDocument,
  due: { readonly gte?: string; readonly lte: string },
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
