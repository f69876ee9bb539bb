/** One action of support for many gifts or purchases of a file (docs/support.md#many-at-once). */
import { createHash } from 'node:crypto';
import type { Command } from 'commander';
import type { CommandContext } from '../commands/context.js';
import { inParallel } from '../lib/async/inParallel.js';
import { csvRecords, withoutMark } from '../ops/exports/csv.js';
import type { EventStore } from '../ports/eventStore.js';
import { commandLineContext } from './caller.js';
import { inputFile, nameOf, readInputText } from './fileNames.js';
import { jsonLine } from './output.js';
import { progressBar } from './progress.js';
import { describeRefusal } from './refusals.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from './terminal.js';

export function manyOptions(command: Command): Command {
  return command
    .option(
      '--file <file>',
      'many at once: a file with one id a line, or a CSV with such a column; -: standard input',
      inputFile,
    )
    .option('--dry-run', 'with --file: say what would be done, and do nothing');
}

export interface ManyFlags {
  readonly file?: string;
  readonly dryRun?: true;
  readonly json?: true;
}

export interface Many {
  /** What is done, for the progress bar: `blocking`. */
  readonly doing: string;
  /** The action, its arguments and the reason: for one id, an equal request is the same command. */
  readonly request: readonly unknown[];
  /**
   * Carries the action out, once for each context. @returns whether anything was done now
   * @throws Refusal, UnavailableError
   */
  readonly each: (id: string, context: CommandContext, events: EventStore) => Promise<boolean>;
}

type Outcome = 'done' | 'unchanged' | 'refused';

interface Handled {
  readonly id: string;
  readonly outcome: Outcome;
  readonly why?: string;
}

const PARALLEL = 8;

/**
 * The ids of a file, each once, in the order of the file. @param column of a CSV that has them
 * @throws CommandFailure where there are none
 */
export async function idsOfFile(
  terminal: Terminal,
  file: string,
  column: 'gift_id' | 'transaction_id',
): Promise<readonly string[]> {
  const [first = [], ...records] = recordsIn(await readInputText(terminal, file), file);
  const index = first.indexOf(column);
  if (index < 0 && first.length > 1)
    throw new CommandFailure(`${nameOf(file)}: a CSV wants the column ${column}; else give one id a line`);
  const cells = index < 0 ? [first, ...records].map(([cell]) => cell) : records.map((record) => record[index]);
  const ids = cells.map((cell = '') => withoutMark(cell.trim())).filter((id) => id !== '');
  if (ids.length === 0) throw new CommandFailure(`${nameOf(file)} names nothing: give one id a line`);
  return [...new Set(ids)];
}

function recordsIn(text: string, file: string): string[][] {
  try {
    return csvRecords(text);
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new CommandFailure(`${nameOf(file)} is no CSV: ${error.message}`);
  }
}

/**
 * Does it for each id, and writes a report. An id has the same command id in each call with the same arguments and
 * reason: what is done is not done again, so an interrupted call is repeated as it was.
 * @throws CommandFailure where any was refused
 */
export async function doMany(
  terminal: Terminal,
  events: EventStore,
  ids: readonly string[],
  { doing, request, each }: Many,
  { dryRun, json }: ManyFlags,
): Promise<void> {
  const { stdout, stderr, signal } = terminal;
  const handled: Handled[] = [];
  const bar = progressBar(stderr, { doing, unit: 'ids' });
  const target = dryRun === true ? withoutAppends(events) : events;
  let count = 0;
  try {
    await inParallel(
      ids.entries(),
      PARALLEL,
      async ([index, id]) => {
        const context = { ...commandLineContext(), commandId: commandIdOf([...request, id]) };
        handled[index] = await handle(id, () => each(id, context, target));
        bar(++count, ids.length);
      },
      signal,
    );
  } finally {
    bar.clear();
    await writeLines(stdout, reportOf(Object.values(handled), dryRun === true, json === true));
  }
  if (signal.aborted) throw interrupted(`interrupted after ${count} of ${ids.length}: the same command goes on`);
  const refused = handled.filter(({ outcome }) => outcome === 'refused').length;
  if (refused > 0) throw new CommandFailure(`${refused} of ${ids.length} ${refused === 1 ? 'was' : 'were'} refused`);
}

const commandIdOf = (command: readonly unknown[]): string =>
  `many-${createHash('sha256').update(JSON.stringify(command)).digest('hex').slice(0, 32)}`;

async function handle(id: string, work: () => Promise<boolean>): Promise<Handled> {
  try {
    return { id, outcome: (await work()) ? 'done' : 'unchanged' };
  } catch (error) {
    if (error instanceof WouldAppend) return { id, outcome: 'done' };
    const failure = describeRefusal(error);
    if (!(failure instanceof CommandFailure)) throw error;
    return { id, outcome: 'refused', why: failure.message };
  }
}

class WouldAppend extends Error {}

/** The log for a dry run: a command that comes to its append would have been done. */
const withoutAppends = (events: EventStore): EventStore => ({
  ...events,
  append: () => Promise.reject(new WouldAppend()),
});

function reportOf(handled: readonly Handled[], dryRun: boolean, json: boolean): string[] {
  if (json) return handled.map((one) => jsonLine({ ...one, ...(dryRun ? { dry_run: true } : {}) }));
  const number = (outcome: Outcome): number => handled.filter((one) => one.outcome === outcome).length;
  return [
    ...handled.flatMap(({ id, why }) => (why === undefined ? [] : [`${id}: ${why}`])),
    `${number('done')} ${dryRun ? 'would be done' : 'done'}, ${number('unchanged')} had nothing left to do, ${number('refused')} refused`,
  ];
}
