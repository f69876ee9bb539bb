/** One action of support for many gifts or purchases of a file (docs/support.md#many-at-once). */
import type { Command } from 'commander';
import { doMany, type HandledItem, type ManyItem, type ManyRequest, onceEach } from '../ops/gifts/many.js';
import { csvRecords, withoutMark } from '../ops/exports/csv.js';
import { repeatedNames } from '../lib/repeatedNames.js';
import { isObject } from '../lib/isObject.js';
import { commandLineContext } from './exports.js';
import type { OpenedStores } from './engines.js';
import { inputFile, nameOf, readInputText } from './fileNames.js';
import { hashOf } from './giftNamed.js';
import { jsonLine } from './output.js';
import { progressBar } from './progress.js';
import { describeRefusal } from './refusals.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from './terminal.js';

export function manyOptions(command: Command): Command {
  return command
    .option(
      '--file <file>',
      'many at once: a file with one id a line, or CSV or NDJSON with such a column; -: standard input',
      inputFile,
    )
    .option('--dry-run', 'with --file: say what would be done, and do nothing');
}

export interface ManyFlags {
  readonly file?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

type Row = Readonly<Record<string, string>>;

/**
 * The rows of a file, in its order, each with the id in `column` and what other columns it has.
 * @throws CommandFailure where there are none
 */
export async function rowsOfFile(
  terminal: Terminal,
  file: string,
  column: 'gift_id' | 'transaction_id',
): Promise<readonly Row[]> {
  const text = await readInputText(terminal, file);
  const rows = text.trimStart().startsWith('{') ? jsonRows(text, file, column) : csvRows(text, file, column);
  const named = rows.filter((row) => (row[column] ?? '') !== '');
  if (named.length === 0) throw new CommandFailure(`${nameOf(file)} names nothing: give one id a line`);
  return named;
}

function csvRows(text: string, file: string, column: string): Row[] {
  const [first = [], ...records] = recordsIn(text, file);
  const headings = first.map((cell) => cell.trim());
  const isHeaded = headings.includes(column);
  if (!isHeaded && first.length > 1)
    throw new CommandFailure(`${nameOf(file)}: a CSV wants the column ${column}; else give one id a line`);
  const twice = headings.find((name, index) => name !== '' && headings.indexOf(name) !== index);
  if (isHeaded && twice !== undefined)
    throw new CommandFailure(`${nameOf(file)} has the column ${twice} twice: which of them is meant is unknown`);
  const columns = isHeaded ? headings : [column];
  return (isHeaded ? records : [first, ...records]).map((record) =>
    Object.fromEntries(columns.map((name, index) => [name, withoutMark((record[index] ?? '').trim())])),
  );
}

function recordsIn(text: string, file: string): string[][] {
  try {
    return csvRecords(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new CommandFailure(`${nameOf(file)} is no CSV: ${error.message}`);
  }
}

function jsonRows(text: string, file: string, column: string): Row[] {
  return text.split('\n').flatMap((line, index): Row[] => {
    if (line.trim() === '') return [];
    const row = objectIn(line);
    if (row === undefined) throw new CommandFailure(`${nameOf(file)}: line ${index + 1} is no JSON object`);
    const [twice] = repeatedNames(line, 1);
    if (twice !== undefined)
      throw new CommandFailure(`${nameOf(file)}: line ${index + 1} has ${twice.path} twice: which is meant is unknown`);
    // Lists end with a line about the list.
    if ('action' in row) return [];
    if (typeof row[column] !== 'string')
      throw new CommandFailure(`${nameOf(file)}: line ${index + 1} has no text ${column}`);
    return [
      Object.fromEntries(
        Object.entries(row).flatMap(([name, value]) => (typeof value === 'string' ? [[name, value]] : [])),
      ),
    ];
  });
}

function objectIn(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isObject(value) ? value : undefined;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

/** Does it for each item, and writes a report. @throws CommandFailure where any was refused */
export async function runMany(
  terminal: Terminal,
  opened: OpenedStores,
  given: readonly ManyItem[],
  request: Omit<ManyRequest, 'dryRun'>,
  { dryRun = false, json }: { readonly dryRun?: boolean; readonly json?: true },
  waitMs = 0,
): Promise<void> {
  const { stdout, stderr, signal } = terminal;
  const { events, models, subjects } = opened;
  const hash = await hashOf(opened, '--file wants the key under which each command is done once');
  const { items, twice } = onceEach(given);
  if (twice !== undefined) throw new CommandFailure(`${twice} is named twice, with two receivers: give one`);
  const handled: HandledItem[] = [];
  const bar = progressBar(stderr, { doing: request.action.name, unit: 'ids' });
  let count = 0;
  try {
    const deps = { events, gifts: models.gifts, accounts: models.accounts, subjects, hash };
    await doMany(
      deps,
      items,
      { ...request, dryRun },
      {
        context: commandLineContext(),
        waitMs,
        signal,
        whyRefused(error) {
          const failure = describeRefusal(error);
          return failure instanceof CommandFailure ? failure.message : undefined;
        },
        onHandled(index, one) {
          handled[index] = one;
          bar(++count, items.length);
        },
      },
    );
  } finally {
    bar.clear();
    await writeLines(stdout, reportOf(Object.values(handled), dryRun, json === true));
  }
  if (signal.aborted) throw interrupted(`interrupted after ${count} of ${items.length}: the same command goes on`);
  const refused = handled.filter(({ outcome }) => outcome === 'refused').length;
  if (refused > 0) throw new CommandFailure(`${refused} of ${items.length} ${refused === 1 ? 'was' : 'were'} refused`);
}

function reportOf(handled: readonly HandledItem[], dryRun: boolean, json: boolean): string[] {
  if (json) return handled.map((one) => jsonLine({ ...one, ...(dryRun ? { dry_run: true } : {}) }));
  const number = (outcome: HandledItem['outcome']): number => handled.filter((one) => one.outcome === outcome).length;
  return [
    ...handled.flatMap(({ id, why }) => (why === undefined ? [] : [`${id}: ${why}`])),
    `${number('done')} ${dryRun ? 'would be done' : 'done'}, ${number('unchanged')} had nothing left to do, ${number('refused')} refused`,
  ];
}
