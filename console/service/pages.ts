/** Lists of `/ops` that are read to their end, a page at a time. */
import { get, type Query } from './call.js';

/** A page of `GET /ops/log`. */
export interface LogPage<Row> {
  readonly data: readonly Row[];
  readonly next: string | null;
  /** Whether the page reaches the end of the log. */
  readonly end: boolean;
}

/**
 * Reads pages of the log until its end, from the beginning or `query.after` on. @param seen receives the rows of each page, and the position that it reaches
 * @throws Failed
 */
export async function readToEnd<Row>(
  query: Query,
  seen: (rows: readonly Row[], position: string | null) => void,
  signal: AbortSignal,
): Promise<void> {
  for (let from = query; ;) {
    const page = await get<LogPage<Row>>('ops/log', { query: { ...from, limit: 1_000 }, signal });
    if (signal.aborted) return;
    seen(page.data, page.next);
    if (page.end || page.next === null) return;
    from = { ...query, after: page.next };
  }
}
