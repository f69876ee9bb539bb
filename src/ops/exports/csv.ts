/**
 * CSV (RFC 4180) for programs and spreadsheets. A spreadsheet converts text that looks like a number, a date or a
 * formula: ids lose digits, leading zeros go, formulas run. So such a text gets a leading apostrophe, and so does one
 * that starts with one. A program always removes one leading apostrophe (`withoutMark`). Amounts are numbers, and their
 * columns name the unit.
 */

export type Cell = string | number | boolean | null | undefined;

const MARK = "'";
/** The first character of a formula in some spreadsheet; and the mark itself. */
const FORMULA = /^[=+\-@\t\r']/;
const NUMBER = /^\s*\d[\d.,]*(?:e[+-]?\d+)?%?\s*$/i;
/** Digits of a number that every spreadsheet leaves as it is. */
const SHORT = /^(?:0|[1-9]\d{0,10})$/;
/** `1-2`, `3/4`, `4.5.26`, `MAR1`, `1-Sep`; a whole ISO 8601 date is meant as one. */
const DATE =
  /^(?:\d{1,4}[-/.:]\d{1,4}(?:[-/.:]\d{1,4})?|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -]?\d{1,4}|\d{1,4}[ -]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)$/i;
const ISO_DATE = /^\d{4}-\d\d-\d\d$/;

/** A row without its line feed; empty cells are null. */
export function csvLine(cells: readonly Cell[]): string {
  return cells.map(csvCell).join(',');
}

/** The text of a cell read from such a file. */
export const withoutMark = (text: string): string => (text.startsWith(MARK) ? text.slice(1) : text);

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = isTakenForOther(cell) ? MARK + cell : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Whether a spreadsheet would convert the text. */
function isTakenForOther(text: string): boolean {
  return FORMULA.test(text) || (NUMBER.test(text) && !SHORT.test(text)) || (DATE.test(text) && !ISO_DATE.test(text));
}
