import { Command, Option } from 'commander';
import { shortened } from '../../lib/quotedText.js';
import {
  type ParkedEntry,
  parkedInLog,
  parkedView,
  type ParkedView,
  type ParkedWithEvents,
  parkedWithEvents,
} from '../../ops/parked/parkedView.js';
import { PARKED_NAMES, type ParkedName, type ParkedState } from '../../domain/parked.js';
import type { EventStore } from '../../ports/eventStore.js';
import { withLog, readStores } from '../engines.js';
import { outputOptions } from '../exports.js';
import { examples, jsonLine, printable, tableLines, blockLines } from '../output.js';
import { type Terminal, writeLines } from '../terminal.js';
import { interruptedDiscards, waitingGroups } from '../../ops/parked/decideGroup.js';
import { eventBlocks } from '../../ops/history/eventRows.js';
import { withLogFallback } from '../../ops/history/withLogFallback.js';
import { findParked } from '../../commands/findParked.js';
import { isDiscardOpen } from '../../commands/parkedWork.js';
import { giftNamed } from '../giftNamed.js';
import { throwDescribed } from '../refusals.js';

export interface ParkedFilter {
  readonly process?: ParkedName;
  readonly step?: string;
}

interface ListFlags extends ParkedFilter {
  readonly state: ParkedState | 'all';
  readonly json?: true;
}

const MAX_CAUSE = 160;

export function filterOptions(command: Command): Command {
  return command
    .addOption(new Option('--process <name>', 'only what this process manager gave up').choices(PARKED_NAMES))
    .option('--step <step>', 'only this step, such as charge, issue, notify, refund');
}

/** Work in any state that the filter names, the oldest first. @throws UnavailableError */
export async function parkedEntries(events: EventStore, { process, step }: ParkedFilter): Promise<ParkedEntry[]> {
  const all = await parkedInLog(events, process === undefined ? PARKED_NAMES : [process]);
  return step === undefined ? all : all.filter(({ document }) => document.step === step);
}

export function parkedListCommand(terminal: Terminal): Command {
  const command = new Command('list')
    .summary('list parked work')
    .description(
      'Lists what waits for a person, the oldest first: what could not be done, for whom, how often it has been parked in a row, since when, and why.',
    )
    .addOption(
      new Option('--state <state>', 'how it stands')
        .choices(['parked', 'retried', 'discarded', 'all'])
        .default('parked'),
    );
  return outputOptions(filterOptions(command))
    .addHelpText(
      'after',
      examples('gift parked list', 'gift parked list --process purchase --json', 'gift parked list --state all'),
    )
    .action(async (flags: ListFlags) => runList(terminal, flags));
}

async function runList(terminal: Terminal, flags: ListFlags): Promise<void> {
  const { state } = flags;
  const [entries, interrupted] = await withLog(terminal, async ({ events }) => {
    const all = await parkedEntries(events, flags);
    const chosen = state === 'all' ? all : all.filter(({ document }) => document.state === state);
    return [chosen, state === 'parked' ? await interruptedDiscards(events, all) : []] as const;
  });
  for (const { id, document } of interrupted)
    terminal.stderr.write(
      `${id}: the discard of this ${document.name} ${document.step} was interrupted, so it is open still: ${discardAgain(id)}\n`,
    );
  if (flags.json === true)
    return writeLines(
      terminal.stdout,
      entries.map((entry) => jsonLine(parkedView(entry))),
    );
  if (entries.length === 0) return interrupted.length > 0 ? undefined : writeLines(terminal.stdout, [noneOf(flags)]);
  await writeLines(terminal.stdout, tableOf(entries, state, terminal.stdout.columns));
}

const discardAgain = (id: string): string => `gift parked discard ${id} --reason "<why>" ends it`;

/** A filter without a match must not look as if all were well. */
function noneOf({ state, process, step }: ListFlags): string {
  if (state !== 'parked') return 'there is no such work';
  return process === undefined && step === undefined
    ? 'no work waits for a person'
    : 'no such work waits for a person: gift parked list shows all that does';
}

function tableOf(entries: readonly ParkedEntry[], state: ListFlags['state'], columns: number | undefined): string[] {
  const rows = entries.map((entry) => {
    const { id, process, step, entity, times, state: itsState, parked_at, cause } = parkedView(entry);
    return [id, process, step, entity, ...(state === 'all' ? [itsState] : []), times, parked_at, cutShort(cause)];
  });
  const count = `${entries.length} ${state === 'all' ? 'in all' : state}; times are UTC; gift parked show ID shows one whole`;
  return [
    ...tableLines(
      ['id', 'process', 'step', 'of', ...(state === 'all' ? ['state'] : []), 'times', 'parked at', 'cause'],
      rows,
      columns,
    ),
    '',
    count,
  ];
}

function cutShort(cause: string): string {
  return shortened(printable(cause), MAX_CAUSE);
}

/** Columns where the terminal does not say how many it has. */
const COLUMNS = 80;

export function parkedGroupsCommand(terminal: Terminal): Command {
  const command = new Command('groups')
    .summary('parked work in groups of one cause')
    .description(
      'Lists what waits for a person by process manager, step and cause, the largest group first: how many, the first, the last, and an example.\n' +
        'Causes that differ in ids, numbers or times alone are one. retry and discard take a group by --group.',
    );
  return outputOptions(command)
    .addHelpText('after', examples('gift parked groups', 'gift parked groups --json'))
    .action(async ({ json }: { readonly json?: true }) => {
      const groups = await withLog(terminal, async ({ events }) => waitingGroups(events));
      if (json === true) return writeLines(terminal.stdout, groups.map(jsonLine));
      if (groups.length === 0) return writeLines(terminal.stdout, ['no work waits for a person']);
      const blocks = groups.map(({ id, process, step, cause, count, first_at, last_at, example }) => ({
        head: `${id}: ${count} × ${process} ${step}, ${first_at} to ${last_at}`,
        paragraphs: [cause, `such as ${example}`],
      }));
      return writeLines(terminal.stdout, [
        ...blockLines(blocks, terminal.stdout.columns ?? COLUMNS),
        '',
        'gift parked retry --group ID, or discard, decides on all of one',
      ]);
    });
}

export function parkedShowCommand(terminal: Terminal): Command {
  const command = new Command('show')
    .summary('show one piece of parked work with its events')
    .description('Shows parked work: each time it was parked and why, who retried or discarded it and why.')
    .argument('<id>', 'its id, or that of its gift (or shortcode), transaction, refund or dispute');
  return outputOptions(command)
    .addHelpText('after', examples('gift parked show 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5'))
    .action(async (id: string, { json }: { readonly json?: true }) => {
      const [work, isOpen] = await readStores(terminal, async (opened) => {
        const { events, models } = opened;
        const { gifts } = withLogFallback(events, models, terminal.signal);
        const found = await findParked({ events, parked: models.parked, gifts }, await giftNamed(opened, id));
        const shown = await parkedWithEvents(events, found, { personal: false });
        const { state, position } = shown;
        return [
          shown,
          state === 'discarded' && (await isDiscardOpen(events, { ...found.work, name: found.name }, position)),
        ] as const;
      }).catch(throwDescribed);
      const next = isOpen ? `its discard was interrupted: ${discardAgain(work.id)}` : WHAT_NEXT[work.state](work);
      const { columns } = terminal.stdout;
      await writeLines(terminal.stdout, json === true ? [jsonLine(work)] : inWords(work, next, columns));
    });
}

const WHAT_NEXT: Readonly<Record<ParkedView['state'], (work: ParkedWithEvents) => string>> = {
  parked: ({ id }) => `it waits for a person: gift parked retry ${id} --reason "<why>", or gift parked discard`,
  retried: ({ settled }) =>
    settled
      ? 'it is over'
      : 'its process manager has it again and is not through; if it fails again it is parked again',
  discarded: () => 'it will not be done',
};

function inWords(work: ParkedWithEvents, next: string, columns: number | undefined): string[] {
  const { id, process, step, entity, transaction_id, state, cause, times, events } = work;
  const about = [
    `parked work ${id}: ${process} ${step} of ${entity}${entity === transaction_id ? '' : ` (transaction ${transaction_id})`}`,
    `${state}, after being parked ${times} ${times === 1 ? 'time' : 'times'} in a row; ${next}`,
    `cause: ${cause}`,
  ];
  return [
    ...blockLines(
      about.map((head) => ({ head, paragraphs: [] })),
      columns,
    ),
    '',
    ...blockLines(eventBlocks(events), columns),
    '',
    `gift history ${transaction_id} shows all that happened around it`,
  ];
}
