/** Formats of the answers under `/ops`: JSON, NDJSON and CSV (docs/support.md#ops-formats). */
import { csvLine } from '../../ops/exports/csv.js';
import type { Call, Schema } from '../pipeline/route.js';

export type Format = 'json' | 'ndjson' | 'csv';

export const CONTENT_TYPES = {
  ndjson: 'application/x-ndjson; charset=utf-8',
  csv: 'text/csv; charset=utf-8; header=present',
} as const;

export const formatParameter = {
  format: {
    type: 'string',
    enum: ['json', 'ndjson', 'csv'],
    description:
      'JSON, or a stream: a JSON object a line, or CSV with a heading. In CSV a text that a spreadsheet would take for a number, date or formula gets a leading apostrophe, and so does a text that starts with one: programs remove one leading apostrophe. Default: as `Accept` says, else JSON.',
  },
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
  rowOf: (record: R) => Parameters<typeof csvLine>[0],
): { heading: string; line(record: R): string } {
  if (format === 'ndjson') return { heading: '', line: (record) => `${JSON.stringify(record)}\n` };
  return { heading: `${csvLine(columns)}\n`, line: (record) => `${csvLine(rowOf(record))}\n` };
}
