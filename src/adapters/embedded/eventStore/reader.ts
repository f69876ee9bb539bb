import type { Database, Statement } from 'better-sqlite3';
import type { EventFilter, EventTexts, RecordedEvent, Strays } from '../../../ports/eventStore.js';
import { AlteredEventError } from '../../../ports/unavailable.js';
import { METADATA, withMetadata } from '../../lazyMetadata.js';
import { afterPrefix } from '../../prefix.js';
import { alteredEvent, storedObject } from '../../storedJson.js';
import { forgetPages, unavailableOf, VALUE } from '../sqlite.js';
import { IN_LOG, LAST_POSITION, MAX_POSITION, positionOf } from './log.js';

/** Length of a slice in characters of data and metadata, which take about 5 ms to parse. */
const SLICE_SIZE = 1_000_000;
const STREAM_SLICE = 500;
/**
 * Rows of one query: of the first, which most streams do not exceed, and of the largest. `all` is faster than
 * `iterate`; of large events few are read in vain.
 */
const ROWS = { first: 8, most: 64 };

export type EventRow = readonly [
  position: number,
  stream: string,
  revision: number,
  type: string,
  id: string,
  at: string,
  data: string,
  metadata: string,
];

type UnsequencedRow = readonly [
  position: string,
  stream: string,
  revision: number,
  type: string,
  id: string,
  at: string,
];

const COLUMNS = 'position, stream, revision, type, id, at, data, metadata';

export interface Slice<E = RecordedEvent> {
  readonly events: E[];
  readonly through: number;
  readonly size: number;
}

export type Scan<E = RecordedEvent> = (after: number, through: number, limit: number) => Slice<E>;

/** Reads of the log, with positions as numbers. Every method throws UnavailableError. */
export interface EventReader {
  end(): number;
  /** Position of the event before the last `count`; 0 where there is none. */
  startOfLast(count: number): number;
  /** Position of the stream's last event; 0 for an empty stream. */
  lastOf(stream: string): number;
  /** The first or last position with a time from `from` to `to`; 0 where there is none. */
  timedWithin(edge: 'first' | 'last', after: number, through: number, from: string, to: string): number;
  /** Adds the next events of a stream, at most one slice, to `into`. @returns whether there may be more */
  readStream(stream: string, from: number, limit: number, into: RecordedEvent[]): boolean;
  /** Runs `work` with one snapshot for all of its reads, which costs more than reading a short stream. */
  inSnapshot(work: () => void): void;
  scan(filter: EventFilter): Scan;
  unsequenced(limit: number): Strays;
  scanTexts(filter: EventFilter): Scan<EventTexts>;
}

export function eventReader(database: Database, file: string): EventReader {
  const endOf = database.prepare<[], number>(LAST_POSITION).pluck();
  const back = database
    .prepare<[number], number>(
      `SELECT position FROM events WHERE position BETWEEN 1 AND ${MAX_POSITION} ORDER BY position DESC LIMIT 1 OFFSET ?`,
    )
    .pluck();
  const lastOf = database
    .prepare<[string], number>(
      `SELECT position FROM events WHERE stream = ? AND ${IN_LOG} ORDER BY revision DESC LIMIT 1`,
    )
    .pluck();
  const timed = (order: 'ASC' | 'DESC'): Statement<[number, number, string, string], number> =>
    database
      .prepare<[number, number, string, string], number>(
        `SELECT position FROM events WHERE position > ${VALUE} AND position <= ${VALUE} AND at >= ? AND at <= ? ORDER BY position ${order} LIMIT 1`,
      )
      .pluck();
  const firstTimed = timed('ASC');
  const lastTimed = timed('DESC');
  const stream = database
    .prepare<[string, number, number], EventRow>(
      `SELECT ${COLUMNS} FROM events WHERE stream = ? AND revision >= ${VALUE} AND ${IN_LOG} ORDER BY revision LIMIT ${VALUE}`,
    )
    .raw();

  const unsequencedCount = database
    .prepare<[], number>(`SELECT count(*) FROM events WHERE position < 1 OR position > ${MAX_POSITION}`)
    .pluck();
  // The position is read as text: a JavaScript number would not be exact.
  const unsequencedWhere = (condition: string): string =>
    `SELECT CAST(position AS TEXT), stream, revision, type, id, at FROM events WHERE position ${condition}`;
  const unsequenced = database
    .prepare<[number], UnsequencedRow>(
      `${unsequencedWhere('< 1')} UNION ALL ${unsequencedWhere(`> ${MAX_POSITION}`)} LIMIT ?`,
    )
    .raw();

  const inSnapshot = database.transaction((work: () => void) => work());

  function guarded<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof AlteredEventError) throw error;
      forgetPages(database, error);
      throw unavailableOf(error, file);
    }
  }

  function scanned<E extends Pick<RecordedEvent, 'position'>>(
    filter: EventFilter,
    make: (row: EventRow) => E,
  ): Scan<E> {
    const condition = conditionOf(filter);
    if (condition === undefined) return (_after, through) => ({ events: [], through, size: 0 });
    const statement: Statement<(string | number)[], EventRow> = guarded(() =>
      database.prepare(
        `SELECT ${COLUMNS} FROM events WHERE position > ${VALUE} AND position <= ${VALUE} ${condition.sql} ORDER BY position LIMIT ${VALUE}`,
      ),
    );
    statement.raw();
    return (after, through, limit) =>
      guarded(() => {
        const events: E[] = [];
        const { size, last } = take(events, limit, make, (before, required) =>
          statement.all(before?.[0] ?? after, through, ...condition.values, required),
        );
        return { events, through: last?.[0] ?? through, size };
      });
  }

  return {
    end: () => guarded(() => endOf.get()!),
    startOfLast: (count) => guarded(() => back.get(count) ?? 0),
    lastOf: (name) => guarded(() => lastOf.get(name) ?? 0),
    timedWithin: (edge, after, through, from, to) =>
      guarded(() => (edge === 'first' ? firstTimed : lastTimed).get(after, through, from, to) ?? 0),

    readStream: (name, from, limit, into) =>
      guarded(() => {
        const had = into.length;
        const { last } = take(into, Math.min(limit, STREAM_SLICE), eventOf, (before, required) =>
          stream.all(name, before === undefined ? from : before[2] + 1, required),
        );
        return last !== undefined && into.length - had < limit;
      }),

    inSnapshot: (work) => guarded(() => inSnapshot(work)),

    unsequenced: (limit) =>
      guarded(() => {
        const found = unsequencedCount.get()!;
        if (found === 0) return { found, first: [] };
        const first = unsequenced.all(limit).map(([position, stream, revision, type, id, at]) => ({
          position,
          stream: textOf(stream),
          revision,
          type: textOf(type),
          id: textOf(id),
          at: textOf(at),
        }));
        return { found, first };
      }),

    scan: (filter) => scanned(filter, eventOf),
    scanTexts: (filter) => scanned(filter, textsOf),
  };
}

/**
 * Takes rows until none is left, `most` were taken, or `SLICE_SIZE` is reached.
 * @param next reads at most `required` rows after a given row; `undefined`: from the first on
 * @returns `last`: the last row that was taken, where there may be more
 */
function take<E>(
  into: E[],
  most: number,
  make: (row: EventRow) => E,
  next: (after: EventRow | undefined, required: number) => readonly EventRow[],
): { readonly size: number; readonly last: EventRow | undefined } {
  let size = 0;
  let last: EventRow | undefined;
  for (let left = most, piece = ROWS.first; left > 0; piece = Math.min(piece * 2, ROWS.most)) {
    const required = Math.min(piece, left);
    const rows = next(last, required);
    for (const row of rows) {
      into.push(make(row));
      size += row[6].length + row[7].length;
      last = row;
      if (size >= SLICE_SIZE) return { size, last };
    }
    if (rows.length < required) return { size, last: undefined };
    left -= required;
  }
  return { size, last };
}

/**
 * The event of a row, in one literal: a spread object that then gets the accessor of its metadata takes ten times as
 * long as parsing the data. @throws AlteredEventError
 */
export function eventOf(row: EventRow): RecordedEvent {
  if (!isWellTyped(row)) throw alteredEvent(textsOf(row), 'a column has a value of another type');
  const [position, revision, type] = [positionOf(row[0]), row[2], row[3]];
  return withMetadata({
    position,
    stream: row[1],
    revision,
    type,
    id: row[4],
    at: row[5],
    data: storedObject('data', row[6], { position, revision, type }),
    [METADATA]: row[7],
  });
}

/**
 * Whether every column has a value of its own type: SQLite stores bytes and fractions in a column of another type
 * unchanged.
 */
function isWellTyped(row: EventRow): boolean {
  const [, stream, revision, type, id, at, data, metadata]: readonly unknown[] = row;
  return (
    typeof stream === 'string' &&
    Number.isSafeInteger(revision) &&
    typeof type === 'string' &&
    typeof id === 'string' &&
    typeof at === 'string' &&
    typeof data === 'string' &&
    typeof metadata === 'string'
  );
}

function textsOf(row: EventRow): EventTexts {
  const texts = {
    position: positionOf(row[0]),
    stream: textOf(row[1]),
    revision: row[2],
    type: textOf(row[3]),
    id: textOf(row[4]),
    at: textOf(row[5]),
    data: textOf(row[6]),
    metadata: textOf(row[7]),
  };
  return isWellTyped(row) ? texts : { ...texts, altered: true };
}

/**
 * The column as a text. A process that alters the file can store bytes in place of a text, by which no other reader
 * finds an event. So they are shown as a text that no event has, and that is no JSON.
 */
function textOf(stored: unknown): string {
  return typeof stored === 'string' ? stored : `(bytes) ${Buffer.isBuffer(stored) ? stored.toString('hex') : ''}`;
}

function conditionOf({ types, streams }: EventFilter): { sql: string; values: string[] } | undefined {
  if (types?.length === 0 || streams?.length === 0) return undefined;
  const values: string[] = [];
  let sql = '';
  if (types !== undefined) {
    sql += ` AND type IN (${types.map(() => '?').join(', ')})`;
    values.push(...types);
  }
  if (streams !== undefined) {
    const ranges = streams.map((prefix) => {
      const next = afterPrefix(prefix);
      values.push(prefix, ...(next === undefined ? [] : [next]));
      return next === undefined ? `stream >= ${VALUE}` : `(stream >= ${VALUE} AND stream < ${VALUE})`;
    });
    sql += ` AND (${ranges.join(' OR ')})`;
  }
  return { sql, values };
}
