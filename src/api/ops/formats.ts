/** Formats of the answers under `/ops`: JSON, NDJSON and CSV (docs/support.md#ops-formats). */
import { type Cell, type CsvOptions, csvWriter } from '../../ops/exports/csv.js';
import type { Call, Schema } from '../pipeline/route.js';
import { choiceSchema } from '../pipeline/schemas.js';

type Format = 'json' | 'ndjson' | 'csv' | 'excel';

const CSV_TYPE = 'text/csv; charset=utf-8; header=present';

export const CONTENT_TYPES = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: CSV_TYPE,
  excel: CSV_TYPE,
} as const;

/** Whether rows are sent as CSV; `excel` is CSV with a byte order mark. */
export const isCsv = (format: Format): boolean => format === 'csv' || format === 'excel';

export const formatParameter = {
  format: choiceSchema(
    ['json', 'ndjson', 'csv', 'excel'],
    'JSON, or a stream: a JSON object a line, or CSV with a heading; `excel` is CSV with a byte order mark, which Excel needs. In CSV the column `local_day` has the day of a time in `time_zone` (default Europe/London), and a text that a spreadsheet would take for a number, date or formula gets a leading apostrophe, and so does a text that starts with one: programs remove one leading apostrophe. Default: as `Accept` says, else JSON.',
  ),
} as const satisfies Record<string, Schema>;

/** Formats by media type, in order of preference. The types carry the parameters that `Accept` may name. */
const BY_TYPE: ReadonlyMap<string, Format> = new Map([
  ['application/json; charset=utf-8', 'json'],
  [CONTENT_TYPES.ndjson, 'ndjson'],
  [CONTENT_TYPES.csv, 'csv'],
]);

/** The requested format; JSON where `Accept` allows none of them, as for errors (RFC 9110 12.5.1 allows it). */
export function formatOf(call: Pick<Call, 'query' | 'preferredType'>): Format {
  const requested = call.query['format'] as Format | undefined;
  return requested ?? BY_TYPE.get(call.preferredType([...BY_TYPE.keys()]) ?? '') ?? 'json';
}

export const alsoAs: readonly string[] = ['application/x-ndjson', 'text/csv'];

export function lineWriter<R extends object>(
  format: Exclude<Format, 'json'>,
  columns: readonly string[],
  rowOf: (record: R) => Cell[],
  zone: CsvOptions['zone'],
): { heading: string; line(record: R): string } {
  if (format === 'ndjson') return { heading: '', line: (record) => `${JSON.stringify(record)}\n` };
  const { heading, line } = csvWriter(columns, { zone, excel: format === 'excel' });
  return { heading, line: (record) => line(rowOf(record)) };
}
