/** One action for many (docs/support.md#many-at-once), in as many calls as that takes. */
import { Failed, post } from './call.js';

export interface ReportItem {
  readonly id: string;
  readonly outcome: 'done' | 'unchanged' | 'refused';
  readonly why?: string;
}

export interface Item {
  readonly id: string;
  readonly user_id?: string;
  readonly phone_number?: string;
}

export interface ManyBody {
  readonly action: string;
  readonly reason: string;
  readonly items: readonly Item[];
}

/** Items that `/ops/actions` takes in one call. */
const MOST = 100;

interface ManyOptions {
  /** Each call has a key of its own below this one; `undefined`: a dry run. */
  readonly key: string | undefined;
  readonly progress: (handled: number) => void;
}

/** @throws Failed which says how many were handled by then: the same call goes on with the rest */
export async function actOnMany({ items, ...body }: ManyBody, { key, progress }: ManyOptions): Promise<ReportItem[]> {
  const handled: ReportItem[] = [];
  for (let from = 0; from < items.length; from += MOST) {
    const part = { ...body, items: items.slice(from, from + MOST), ...(key === undefined ? { dry_run: true } : {}) };
    const own = key === undefined ? undefined : `${key}-${from}`;
    try {
      const { data } = await post<{ readonly data: { readonly items: readonly ReportItem[] } }>(
        'ops/actions',
        part,
        own,
      );
      handled.push(...data.items);
    } catch (error) {
      throw key === undefined ? error : goingOn(error, handled.length, items.length);
    }
    if (items.length > MOST) progress(handled.length);
  }
  return handled;
}

/** The error of a call in several steps. */
export function goingOn(error: unknown, handled: number, of: number): unknown {
  if (!(error instanceof Failed) || handled === 0) return error;
  return new Failed(
    `${error.message} ${handled} of ${of} were handled: do it again to go on with the rest.`,
    error.status,
  );
}
