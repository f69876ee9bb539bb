/** How results are written: JSON lines, or a table for people; CSV is made by `audit/csv.ts`. */
import type { Cell } from '../audit/csv.js';

/** A record as one JSON line, without its line feed. */
export const jsonLine = (record: object): string => plain(JSON.stringify(record));

/** A record as JSON for people, indented. */
export const jsonText = (record: object): string => plain(JSON.stringify(record, null, 2));

/** The same JSON, without signs that move a terminal's cursor or turn its text around: a gift's message may hold any. Those below U+0020 stand escaped already. */
function plain(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\p{Cf}]/gu, (sign) => Array.from({ length: sign.length }, (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''));
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
