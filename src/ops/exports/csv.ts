/**
 * Rows as CSV (RFC 4180), for programs and for spreadsheets. A spreadsheet turns text that looks like a number, a date
 * or a formula into one: ids of digits lose their last digits, leading zeros go, and a formula is run. So such a text
 * is led by an apostrophe, and so is one that begins with an apostrophe: a program takes one leading apostrophe away,
 * always, and has the text again (`withoutMark`). Amounts are numbers, and their columns name the unit.
 */

/** A value of a row. */
export type Cell = string | number | boolean | null | undefined;

const MARK = "'";
/** What begins a formula, in one spreadsheet or another; and the mark itself. */
const FORMULA = /^[=+\-@\t\r']/;
const NUMBER = /^\s*\d[\d.,]*(?:e[+-]?\d+)?%?\s*$/i;
/** Digits of a number that every spreadsheet shows as it is. */
const SHORT = /^(?:0|[1-9]\d{0,10})$/;
/** `1-2`, `3/4`, `4.5.26`, `MAR1`, `1-Sep`; a whole date of ISO 8601 is one on purpose. */
const DATE =
  /^(?:\d{1,4}[-/.:]\d{1,4}(?:[-/.:]\d{1,4})?|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -]?\d{1,4}|\d{1,4}[ -]?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*)$/i;
const ISO_DATE = /^\d{4}-\d\d-\d\d$/;

/** A row, without its line feed; empty: null. */
export function csvLine(cells: readonly Cell[]): string {
  return cells.map(csvCell).join(',');
}

/** The text of a cell that was read from such a file. */
export const withoutMark = (text: string): string => (text.startsWith(MARK) ? text.slice(1) : text);

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = isTakenForOther(cell) ? MARK + cell : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Whether a spreadsheet would take a text for something else. */
function isTakenForOther(text: string): boolean {
  return FORMULA.test(text) || (NUMBER.test(text) && !SHORT.test(text)) || (DATE.test(text) && !ISO_DATE.test(text));
}
