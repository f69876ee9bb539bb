/** Tables, whole and in pages. */
import type { ComponentChildren } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { messageOf } from '../service/attempt.js';
import { get, type Query } from '../service/call.js';
import { type Loaded, type Options, useLoaded } from '../service/loaded.js';
import { Problem, Shown } from './page.js';
import { sightQuery } from './personal.js';
import { count } from './text.js';

export interface Column<Row> {
  readonly name: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Whether the cells are numbers, which are aligned at their end. */
  readonly number?: true;
}

interface TableProps<Row> {
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  readonly rows: readonly Row[];
  readonly keyOf: (row: Row) => string;
  /** Shown in place of a table without rows. */
  readonly none: string;
}

export function Table<Row>({ caption, columns, rows, keyOf, none }: TableProps<Row>) {
  if (rows.length === 0) return <p>{none}</p>;
  return (
    // The region scrolls by keyboard, too, where the table is wider than the window.
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead>
          <tr>
            {columns.map(({ name, number }) => (
              <th key={name} scope="col" class={number ? 'number' : undefined}>
                {name}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={keyOf(row)}>
              {columns.map(({ name, cell, number }) => (
                <td key={name} class={number ? 'number' : undefined}>
                  {cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Rows of a table that are shown before more are requested. */
const SHOWN = 25;

/** A table whose rows are all there, and of which the first ones are shown. */
export function Shortened<Row>({ rows, ...table }: TableProps<Row>) {
  const [shown, setShown] = useState(SHOWN);
  return (
    <>
      <Table {...table} rows={rows.slice(0, shown)} />
      {rows.length <= shown ? null : (
        <button type="button" class="outline" onClick={() => setShown(shown + SHOWN)}>
          Show more of {count(rows.length)}
        </button>
      )}
    </>
  );
}

export interface Pages<Row> {
  readonly data: readonly Row[];
  /** The `after` of the following page; null at the end. */
  readonly next: string | null;
  /** Of a list whose `next` is never null: whether this is the end. */
  readonly end?: boolean;
}

interface Paging<Row> {
  readonly first: Loaded<Pages<Row>>;
  /** Rows of all pages so far. */
  readonly rows: readonly Row[];
  readonly hasMore: boolean;
  readonly more: () => void;
  readonly busy: boolean;
  /** Why the following page is missing. */
  readonly error: string | undefined;
}

interface Further<Row> {
  readonly rows: readonly Row[];
  readonly last?: Pages<Row>;
  readonly busy?: true;
  readonly error?: string;
}

interface PagedOptions<Row> extends Options<Pages<Row>> {
  /** Rows of a page. */
  readonly limit?: number | undefined;
}

/**
 * A list of `/ops` in pages: the first one, and more when it is requested. It is not loaded again by itself while later
 * pages are shown.
 */
export function usePaged<Row>(
  path: string,
  query: Query = {},
  { limit = 50, sight, everyMs }: PagedOptions<Row> = {},
): Paging<Row> {
  const all = JSON.stringify([path, query, limit]);
  const shown: Query = { ...query, ...sightQuery({ reason: sight }), limit };
  const [further, setFurther] = useState<Further<Row>>({ rows: [] });
  const isFurther = useRef(false);
  isFurther.current = further.last !== undefined;
  const pauseMs = useRef(everyMs);
  pauseMs.current = everyMs;
  const first = useLoaded(async (signal) => get<Pages<Row>>(path, { query: shown, signal }), [all], {
    sight,
    everyMs: (latest) => {
      if (isFurther.current) return undefined;
      return typeof pauseMs.current === 'function' ? pauseMs.current(latest) : pauseMs.current;
    },
  });
  const current = useRef(first.value);
  current.current = first.value;
  useEffect(() => setFurther({ rows: [] }), [all, first.value]);
  const { next = null, end = false } = further.last ?? first.value ?? {};
  const load = async (): Promise<void> => {
    const begun = first.value;
    setFurther({ ...further, busy: true });
    const after = await get<Pages<Row>>(path, { query: { ...shown, after: next ?? undefined } }).then(
      (last): Further<Row> => ({ rows: [...further.rows, ...last.data], last }),
      (error: unknown): Further<Row> => ({
        rows: further.rows,
        ...(further.last === undefined ? {} : { last: further.last }),
        error: messageOf(error),
      }),
    );
    // The list may have been loaded again, from its beginning.
    if (current.current === begun) setFurther(after);
  };
  return {
    first,
    rows: [...(first.value?.data ?? []), ...further.rows],
    hasMore: next !== null && !end,
    more: () => void load(),
    busy: further.busy === true,
    error: further.error,
  };
}

interface PagedTableProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly paging: Paging<Row>;
  /** Of the rows so far, those to show. */
  readonly rows?: readonly Row[];
}

export function PagedTable<Row>({ paging, rows = paging.rows, none, ...table }: PagedTableProps<Row>) {
  const { first, hasMore } = paging;
  return (
    <Shown of={first}>
      {() => (
        <>
          <Table {...table} none={hasMore ? 'Nothing so far: the list goes on.' : none} rows={rows} />
          <More paging={paging} />
        </>
      )}
    </Shown>
  );
}

/** The button for the following page, where there is one. */
export function More<Row>({ paging: { hasMore, more, busy, error } }: { readonly paging: Paging<Row> }) {
  return (
    <>
      {error === undefined ? null : <Problem>{error}</Problem>}
      {hasMore ? (
        <button type="button" class="outline" aria-busy={busy} disabled={busy} onClick={more}>
          Show more
        </button>
      ) : null}
    </>
  );
}

interface PagedProps<Row> extends Omit<TableProps<Row>, 'rows'> {
  readonly path: string;
  readonly query?: Query;
  /** Rows of a page. */
  readonly limit?: number;
}

export function Paged<Row>({ path, query, limit, ...table }: PagedProps<Row>) {
  return <PagedTable {...table} paging={usePaged<Row>(path, query, { limit })} />;
}
