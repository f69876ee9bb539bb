/** Output: JSON lines, or tables for people. `ops/exports/csv.ts` makes CSV. */
import type { Cell } from '../ops/exports/csv.js';
import type { EventBlock } from '../ops/history/eventRows.js';

/** A record as one JSON line, without its line feed. */
export const jsonLine = (record: object): string => plain(JSON.stringify(record));

/** Indented JSON. */
export const jsonText = (record: object): string => plain(JSON.stringify(record, null, 2));

/**
 * The same JSON, without characters that move a terminal's cursor or reverse its text: messages of gifts may hold any.
 * Those below U+0020 are escaped already.
 */
function plain(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\p{Cf}]/gu, (sign) =>
    Array.from({ length: sign.length }, (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/** A table with columns as wide as their widest cell; numbers to the right. Control characters are left out. */
export function tableLines(headings: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const texts = rows.map((row) => row.map((cell) => printable(cell)));
  const widths = headings.map((heading, column) =>
    Math.max(heading.length, ...texts.map((row) => row[column]?.length ?? 0)),
  );
  const right = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number' || row[column] === null),
  );
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, column) =>
        right[column] === true ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd();
  return [line(headings), line(widths.map((width) => '-'.repeat(width))), ...texts.map(line)];
}

/** A terminal must not obey what others have written. */
export function printable(cell: Cell): string {
  return cell === null || cell === undefined ? '' : String(cell).replaceAll(/[\p{Cc}\p{Cf}]/gu, '');
}

const INDENT = '    ';
/** Without a known width, lines are not broken. */
const NARROWEST = 40;

/** Events as blocks, no line wider than the terminal (columns; absent: any width). */
export function blockLines(blocks: readonly EventBlock[], columns: number | undefined): string[] {
  const width = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(NARROWEST, columns);
  return blocks.flatMap(({ head, more }) => [
    ...wrapped(printable(head), width, INDENT, ''),
    ...more.flatMap((text) => wrapped(printable(text), width, `${INDENT}  `, INDENT)),
  ]);
}

/**
 * Wraps words to this width; a wider word is cut. Widths are characters, of which East Asian ones and emoji take two
 * columns.
 */
function wrapped(text: string, width: number, indent: string, firstIndent: string): string[] {
  const lines: string[] = [];
  let line = firstIndent;
  let used = firstIndent.length;
  let empty = true;
  const end = (): void => {
    lines.push(line.trimEnd());
    line = indent;
    used = indent.length;
    empty = true;
  };
  for (const word of text.split(' ')) {
    const wide = widthOf(word);
    if (!empty && used + 1 + wide > width) end();
    if (!empty) {
      line += ' ';
      used += 1;
    }
    for (const sign of word) {
      const its = widthOf(sign);
      if (used + its > width) end();
      line += sign;
      used += its;
      empty = false;
    }
    empty = false;
  }
  end();
  return lines;
}

function widthOf(text: string): number {
  let width = 0;
  for (const sign of text)
    width +=
      /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Extended_Pictographic}/u.test(
        sign,
      )
        ? 2
        : 1;
  return width;
}
