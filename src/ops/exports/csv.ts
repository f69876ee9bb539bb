/**
 * CSV (RFC 4180) for programs and spreadsheets. A spreadsheet converts text that looks like a number, a date or a
 * formula: ids lose digits, leading zeros go, formulas run. Such a text gets a leading apostrophe, as does every text
 * that starts with an apostrophe: a program always removes one (`withoutMark`). Columns of amounts name the unit.
 */
import { DEFAULT_ZONE, type TimeZone, timeZone } from '../ranges/times.js';

export type Cell = string | number | boolean | null | undefined;

const MARK = "'";
/** Characters that start a formula, and the mark itself. */
const FORMULA = /^[=+\-@\t\r']/;
/** Texts that look like numbers: `007`, `1,5`, `.5`, `1e5`, `5%`, `£10`, `(5)`, `1 1/2`. */
const NUMBER = /^\(?[$£€¥]? ?[.,]?\d[\d.,]*(?:e[+-]?\d+)?(?: \d+\/\d+)? ?[%$£€¥]?\)?$/i;
/** Numbers that every spreadsheet leaves as they are. */
const SHORT = /^(?:0|[1-9]\d{0,10})$/;
const MONTH = String.raw`(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?`;
const TIME = String.raw`\d{1,2}(?::\d{1,2}){0,2}(?:\.\d+)?(?: ?[ap]\.?m\.?)?`;
/**
 * Texts that look like dates or times: `1-2`, `3/4`, `4.5.26`, `MAR1`, `1-Sep`, `1 Jan 2026`, `Jan 1, 2026`, `10:30
 * PM`, `2026-05-04T10:00`.
 */
const DATE = new RegExp(
  [
    String.raw`^\d{1,4}[-/.:]\d{1,4}(?:[-/.:]\d{1,4})?(?:[T ]${TIME})?$`,
    String.raw`^\d{1,4}[-/. ]?${MONTH}(?:[-/., ]{1,2}\d{1,4})?(?: ${TIME})?$`,
    String.raw`^${MONTH}[-/. ]?\d{1,4}(?:[-/., ]{1,2}\d{1,4})?(?: ${TIME})?$`,
    String.raw`^${TIME}$`,
  ].join('|'),
  'i',
);
const ISO_DATE = /^\d{4}-\d\d-\d\d$/;

/** One line of CSV, without a line feed. */
export function csvLine(cells: readonly Cell[]): string {
  return cells.map(csvCell).join(',');
}

/** Without it Excel reads UTF-8 as its machine's code page, and a pound sign is two characters. */
export const BYTE_ORDER_MARK = '\uFEFF';

export interface CsvOptions {
  /** Time zone of the column `local_day`; default: Europe/London. */
  readonly zone?: Pick<TimeZone, 'dayOf'> | undefined;
  /** Whether the file begins with a byte order mark. */
  readonly excel?: boolean | undefined;
}

/** Lines of CSV, each with its line feed. */
interface CsvWriter {
  readonly heading: string;
  line(cells: readonly Cell[]): string;
}

/** Writes records with a column `at`; the column `local_day` after it has the day of the time in a time zone. */
export function csvWriter(columns: readonly string[], { zone = timeZone(DEFAULT_ZONE), excel }: CsvOptions): CsvWriter {
  const time = columns.indexOf('at');
  const withDay = (cells: readonly Cell[], day: Cell): Cell[] => cells.toSpliced(time + 1, 0, day);
  return {
    heading: `${excel === true ? BYTE_ORDER_MARK : ''}${csvLine(withDay(columns, 'local_day'))}\n`,
    line: (cells) => `${csvLine(withDay(cells, zone.dayOf(String(cells[time]))))}\n`,
  };
}

export const withoutMark = (text: string): string => (text.startsWith(MARK) ? text.slice(1) : text);

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = wouldBeConverted(cell) ? MARK + cell : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function wouldBeConverted(text: string): boolean {
  if (SHORT.test(text) || ISO_DATE.test(text)) return false;
  const bare = text.trim();
  return FORMULA.test(text) || NUMBER.test(bare) || DATE.test(bare);
}

/** Cells of one record, quoted or not, each with what ends it: a comma, or the end of the line or text. */
const CELL = /(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/gy;

/**
 * The records of a CSV (RFC 4180), without empty lines and a byte order mark.
 * @throws SyntaxError that names the line
 */
export function csvRecords(text: string): string[][] {
  const records: string[][] = [];
  let record: string[] = [];
  let read = 0;
  const body = text.replace(/^\uFEFF/, '');
  for (const [whole, quoted, plain = '', end] of body.matchAll(CELL)) {
    read += whole.length;
    record.push(quoted === undefined ? plain : quoted.replaceAll('""', '"'));
    if (end === ',') continue;
    if (record.some((cell) => cell !== '')) records.push(record);
    record = [];
  }
  if (read < body.length)
    throw new SyntaxError(`line ${body.slice(0, read).split('\n').length} has a quote in a wrong place`);
  return records;
}
