import type { Cell } from '../ops/exports/csv.js';
import { widthOf, wrapped } from '../lib/wrappedText.js';
import type { EventBlock } from '../ops/history/eventRows.js';

/** Examples for the end of a command's help. */
export const examples = (...commands: readonly string[]): string =>
  `\n${commands.length === 1 ? 'Example' : 'Examples'}:\n${commands.map((command) => `  $ ${command}`).join('\n')}`;

/** The record as a line of JSON, without a line feed. */
export const jsonLine = (record: object): string => plain(JSON.stringify(record));

export const jsonText = (record: object): string => plain(JSON.stringify(record, null, 2));

/**
 * Escapes characters that move a terminal's cursor or reverse its text: texts of users may hold any. JSON escapes those
 * below U+0020.
 */
function plain(json: string): string {
  return json.replaceAll(/[\u007f-\u009f\p{Cf}]/gu, (sign) =>
    Array.from({ length: sign.length }, (_, at) => `\\u${sign.charCodeAt(at).toString(16).padStart(4, '0')}`).join(''),
  );
}

/**
 * A table that is at most as wide as the terminal: texts are broken at words, and where that is not enough, each row
 * has a line for each of its cells. @param columns the terminal's width; `undefined`: any
 */
export function tableLines(
  headings: readonly string[],
  rows: readonly (readonly Cell[])[],
  columns?: number,
): string[] {
  const texts = rows.map((row) => headings.map((_, column) => printable(row[column])));
  const widthsBy = (measure: (text: string) => number): number[] =>
    headings.map((heading, column) => Math.max(...[heading, ...texts.map((row) => row[column] ?? '')].map(measure)));
  const widths = fitted(widthsBy(widthOf), widthsBy(longestWord), columns ?? Number.POSITIVE_INFINITY);
  if (widths === undefined) return recordLines(headings, texts, columns ?? 0);
  const right = headings.map(
    (_, column) => rows.length > 0 && rows.every((row) => typeof row[column] === 'number' || row[column] === null),
  );
  const padded = (text: string, column: number): string => {
    const fill = ' '.repeat(Math.max(0, (widths[column] ?? 0) - widthOf(text)));
    return right[column] === true ? fill + text : text + fill;
  };
  const lines = (cells: readonly string[]): string[] => {
    const broken = cells.map((cell, column) => wrapped(cell, widths[column] ?? 0, '', ''));
    const height = Math.max(...broken.map(({ length }) => length));
    return Array.from({ length: height }, (_, at) =>
      broken
        .map((cell, column) => padded(cell[at] ?? '', column))
        .join(GAP)
        .trimEnd(),
    );
  };
  return [...lines(headings), widths.map((width) => '-'.repeat(width)).join(GAP), ...texts.flatMap(lines)];
}

const GAP = '  ';

const longestWord = (text: string): number => Math.max(...text.split(' ').map(widthOf));

/** The widths, of which the largest are reduced until the table fits; `undefined`: it can't. */
function fitted(widths: readonly number[], least: readonly number[], columns: number): readonly number[] | undefined {
  const fit = [...widths];
  let over = fit.reduce((sum, width) => sum + width, 0) + GAP.length * (fit.length - 1) - columns;
  for (; over > 0; over--) {
    const shrinkable = fit.map((width, column) => (width > (least[column] ?? 0) ? width : 0));
    const largest = shrinkable.indexOf(Math.max(...shrinkable));
    if (shrinkable[largest] === 0) return undefined;
    fit[largest] = (fit[largest] ?? 0) - 1;
  }
  return fit;
}

/** Each row as lines of a heading and its cell, without those of empty cells. */
function recordLines(headings: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  const width = Math.max(...headings.map(widthOf)) + GAP.length;
  const indent = ' '.repeat(width);
  return rows.flatMap((cells, at) => [
    ...(at === 0 ? [] : ['']),
    ...cells.flatMap((cell, column) =>
      cell === '' ? [] : wrapped(cell, Math.max(NARROWEST, columns), indent, (headings[column] ?? '').padEnd(width)),
    ),
  ]);
}

/** Text of a cell without control characters: a terminal must not obey texts of users. */
export function printable(cell: Cell): string {
  return cell === null || cell === undefined ? '' : String(cell).replaceAll(/[\p{Cc}\p{Cf}]/gu, '');
}

const INDENT = '    ';
const NARROWEST = 40;

/** `columns`: the terminal's width; `undefined`: lines are not broken. */
export function blockLines(blocks: readonly EventBlock[], columns: number | undefined): string[] {
  const width = columns === undefined ? Number.POSITIVE_INFINITY : Math.max(NARROWEST, columns);
  return blocks.flatMap(({ head, paragraphs }) => [
    ...wrapped(printable(head), width, INDENT, ''),
    ...paragraphs.flatMap((text) => wrapped(printable(text), width, `${INDENT}  `, INDENT)),
  ]);
}

/** A text in lines, broken at words. `columns`: the terminal's width; `undefined`: one line. */
export function textLines(text: string, columns: number | undefined): string[] {
  return blockLines([{ head: text, paragraphs: [] }], columns);
}
