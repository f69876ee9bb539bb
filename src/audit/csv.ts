/** Rows as CSV (RFC 4180). */

/** A value of a row. */
export type Cell = string | number | boolean | null | undefined;

/** A row, without its line feed. A text that a spreadsheet would take for a formula is led by an apostrophe; empty: null. */
export function csvLine(cells: readonly Cell[]): string {
  return cells.map(csvCell).join(',');
}

function csvCell(cell: Cell): string {
  if (cell === null || cell === undefined) return '';
  if (typeof cell !== 'string') return String(cell);
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
