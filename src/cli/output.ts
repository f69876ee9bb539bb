/** How results are written: JSON lines, CSV (RFC 4180), or a table for people. */

/** A value of a row. */
export type Cell = string | number | boolean | null | undefined;

/** A record as one JSON line, without its line feed. */
export const jsonLine = (record: object): string => JSON.stringify(record);

/**
 * A row as CSV, without its line feed. A text that a spreadsheet would take for a formula is led by an apostrophe; empty: null.
 */
export function csvLine(cells: readonly Cell[]): string {
  return cells.map(csvCell).join(',');
}

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Rows under their headings, in columns as wide as their widest cell; numbers to the right. Control characters are left out. */
export function tableLines(headings: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const texts = rows.map((row) => row.map((cell) => printable(cell)));
  const widths = headings.map((heading, column) => Math.max(heading.length, ...texts.map((row) => row[column]?.length ?? 0)));
  const right = headings.map((_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number' || row[column] === null));
  const line = (cells: readonly string[]): string =>
    cells.map((cell, column) => (right[column] === true ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0))).join('  ').trimEnd();
  return [line(headings), line(widths.map((width) => '-'.repeat(width))), ...texts.map(line)];
}

/** What a terminal shows of a value: texts of others must not move the cursor. */
export function printable(cell: Cell): string {
  return cell === null || cell === undefined ? '' : String(cell).replaceAll(/[\p{Cc}\p{Cf}]/gu, '');
}
