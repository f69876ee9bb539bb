/** `gift log`: reads the log, and follows it (docs/support.md#the-log). */
import { Command, InvalidArgumentError } from 'commander';
import { endTimer, every } from '../lib/world.js';
import { logBlocks } from '../ops/history/eventRows.js';
import { type EventView, eventView } from '../ops/history/eventView.js';
import { withPersonalTexts } from '../ops/history/personalTexts.js';
import {
  followLog,
  lastOfLog,
  LOG_FILTERS,
  type LogFilter,
  logTopic,
  readLog,
  unknownLogFilter,
} from '../ops/history/readLog.js';
import type { LogRange } from '../ops/ranges/range.js';
import type { EventStore, Position, RecordedEvent } from '../ports/eventStore.js';
import { refuseOtherKeys, withLog } from './engines.js';
import { cliAccess, explainMask, outputOptions, type SightFlags, sightOf, sightOptions } from './exports.js';
import { blockLines, examples, jsonLine } from './output.js';
import { type RangeFlags, rangeOf, rangeOptions } from './ranges.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeText } from './terminal.js';

interface LogFlags extends RangeFlags, SightFlags, Omit<LogFilter, 'correlation_id'> {
  readonly correlationId?: string;
  readonly after?: string;
  readonly last?: number;
  readonly follow?: true;
  readonly json?: true;
}

const MOST_LAST = 1_000;
const ALIVE_MS = 60_000;

const dashed = (name: string): string => name.replaceAll('_', '-');

export function logCommand(terminal: Terminal): Command {
  const command = new Command('log')
    .summary('read the log, and follow it')
    .description(
      'Shows events of all streams in the order of the log, without access records (gift audit access has these). All filters must match. Secret fields are shown nowhere, personal ones masked.',
    );
  for (const [name, chosen] of Object.entries(LOG_FILTERS))
    command.option(`--${dashed(name)} <${name === 'correlation_id' ? 'id' : 'name'}>`, `only ${chosen}`);
  command
    .option('--after <position>', 'only after this position')
    .option('--last <count>', `only the last so many that match, up to ${MOST_LAST}`, lastCount)
    .option('--follow', 'go on with what is appended, until Ctrl-C; alone: only with that');
  sightOptions(outputOptions(rangeOptions(command)));
  return command
    .addHelpText(
      'after',
      examples(
        'gift log --category gift --last 20 --follow',
        'gift log --correlation-id 0f8fad5b-d9cb-469f-a165-70867728950e',
        'gift log --stream transaction-6ec0bd7f11c043da975e2a8ad9ebae0b --json',
      ),
    )
    .action(async (flags: LogFlags) => runLog(terminal, flags));
}

function lastCount(text: string): number {
  if (!/^\d{1,4}$/.test(text) || Number(text) < 1 || Number(text) > MOST_LAST)
    throw new InvalidArgumentError(`Give a number from 1 to ${MOST_LAST}.`);
  return Number(text);
}

function refuseOddFlags({ last, after, from, to, follow }: LogFlags): void {
  if (last !== undefined && (after ?? from ?? to) !== undefined)
    throw usageFailure('--last goes without --after, --from and --to');
  if (follow === true && to !== undefined) throw usageFailure('--follow goes without --to');
}

async function runLog(terminal: Terminal, flags: LogFlags): Promise<void> {
  refuseOddFlags(flags);
  const sight = sightOf(flags);
  const { stream, category, type, correlationId: correlation_id } = flags;
  const filter: LogFilter = { stream, category, type, correlation_id };
  const { signal } = terminal;
  await withLog(terminal, async (opened) => {
    const { events, subjects } = opened;
    await refuseOtherKeys(opened);
    const unknown = await unknownLogFilter(events, filter);
    if (unknown !== undefined) throw new CommandFailure(`--${dashed(unknown.name)}: ${unknown.words}`);
    const range = await rangeOf(events, flags, flags.after);
    const record = await cliAccess(events).start('gift log', { ...flags, ...logTopic(filter) }, sight);
    const write = writer(terminal, flags.json === true);
    let position: Position | null = range.after;
    let count = 0;
    let complete = false;
    try {
      for await (const batch of batchesOf(events, { range, filter, flags, signal })) {
        const shown = await withPersonalTexts(subjects, batch.events, sight);
        if (!(await write(shown.map((event) => eventView(event, sight))))) return;
        count += shown.length;
        ({ position } = batch);
      }
      complete = flags.follow === true || !signal.aborted;
    } finally {
      await record.end(count, position, complete);
    }
    const on = position === null ? '' : `; --after ${position} goes on from here`;
    if (!complete) throw interrupted(`interrupted${on}`);
    if (flags.follow === true) terminal.stderr.write(`gift: ended${on}\n`);
    else if (count === 0) terminal.stderr.write('no event is like this\n');
  });
}

interface Reading {
  readonly range: LogRange;
  readonly filter: LogFilter;
  readonly flags: LogFlags;
  readonly signal: AbortSignal;
}

async function* batchesOf(
  events: EventStore,
  { range, filter, flags, signal }: Reading,
): AsyncGenerator<{ readonly events: readonly RecordedEvent[]; readonly position: Position | null }> {
  const { last, follow, after, from } = flags;
  const { through } = range;
  if (last !== undefined) {
    const found = await lastOfLog(events, through, filter, { count: last, withinMs: Number.POSITIVE_INFINITY, signal });
    yield { events: found.events, position: through };
  } else if (follow !== true || (after ?? from) !== undefined) yield* readLog(events, range, filter, signal);
  if (follow !== true || signal.aborted) return;
  // What waits for new events does not keep a process alive.
  const alive = every(ALIVE_MS, () => undefined);
  try {
    yield* followLog(events, through ?? undefined, filter, signal);
  } finally {
    endTimer(alive);
  }
}

/** Writes events as they come; the answer is false once the reader has left. */
function writer(terminal: Terminal, isJson: boolean): (views: readonly EventView[]) => Promise<boolean> {
  const { stdout } = terminal;
  let explained = isJson;
  return async (views) => {
    const lines = isJson ? views.map(jsonLine) : blockLines(logBlocks(views), stdout.columns);
    if (lines.length > 0 && !(await writeText(stdout, `${lines.join('\n')}\n`))) return false;
    if (!explained) explained = await explainMask(terminal, views);
    return true;
  };
}
