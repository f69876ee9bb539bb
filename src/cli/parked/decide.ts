import { Command } from 'commander';
import { lastReason, parkedEntry, type ParkedEntry, parkedView, type ParkedView } from '../../ops/parked/parkedView.js';
import { finishDiscards, groupMembers, isWaiting } from '../../ops/parked/decideGroup.js';
import type { ParkedDeps } from '../../commands/findParked.js';
import type { EventStore } from '../../ports/eventStore.js';
import { withLogFallback } from '../../ops/history/withLogFallback.js';
import { discardParked, type ParkedOutcome, retryParked } from '../../commands/parkedWork.js';
import { commandLineContext, neededReason, outputOptions } from '../exports.js';
import { type OpenedStores, withLog, withStores } from '../engines.js';
import { giftNamed } from '../giftNamed.js';
import { examples, jsonLine } from '../output.js';
import { refuseWhileHeld } from '../outward.js';
import { describeRefusal } from '../refusals.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { filterOptions, parkedEntries, type ParkedFilter } from './list.js';

interface DecideFlags extends ParkedFilter {
  readonly all?: true;
  readonly group?: string;
  readonly dryRun?: true;
  readonly reason?: string;
  readonly json?: true;
}

interface Decision {
  readonly word: 'retry' | 'discard';
  readonly decide: typeof retryParked;
  readonly done: string;
  readonly already: string;
  /** Text printed at the end, where anything was recorded. */
  readonly after: string;
}

const RETRY: Decision = {
  word: 'retry',
  decide: retryParked,
  done: 'handed back',
  already: 'was handed back before',
  after: 'a running service does it, and parks again what fails again: gift parked list',
};
const DISCARD: Decision = {
  word: 'discard',
  decide: discardParked,
  done: 'discarded',
  already: 'was discarded before',
  after: '',
};

export function retryCommand(terminal: Terminal): Command {
  const command = new Command('retry')
    .summary('hand parked work back to the service')
    .description(
      `Hands parked work back: a running service goes on with it from what the log and the provider say, so no charge, notification or refund happens twice.
What fails again is parked again, with the count. What is handed back already stays so.`,
    )
    .argument('[id...]', 'ids of the parked work, or of its gift (or shortcode), transaction, refund or dispute')
    .option('--all', 'all that is parked, or what --process and --step choose of it');
  return withReason(groupOptions(filterOptions(command)))
    .addHelpText(
      'after',
      examples(
        'gift parked retry 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5 --reason "the card provider is up again"',
        'gift parked retry --group 5d41c0ffee12 --reason "the card provider is up again"',
        'gift parked retry --all --process purchase --step charge --reason "the card provider is up again"',
      ),
    )
    .action(async (ids: string[], flags: DecideFlags) => runDecision(terminal, RETRY, ids, flags));
}

export function discardCommand(terminal: Terminal): Command {
  const command = new Command('discard')
    .summary('take parked work off the list for good')
    .description(
      'Discards parked work: a person has seen to it, or decided that it need not be done. It stays in the log, with who and why.\n' +
        'A message to a receiver is recorded as failed. A charge is recorded as declined: its gifts are cancelled (look at the provider first). A refund or a dispute stays as it was: nothing more is given back or freed.',
    )
    .argument('[id...]', 'ids of the parked work, or of its gift (or shortcode), transaction, refund or dispute');
  return withReason(groupOptions(command))
    .addHelpText(
      'after',
      examples(
        'gift parked discard 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5 --reason "notified the receiver by telephone"',
        'gift parked discard --group 5d41c0ffee12 --dry-run',
      ),
    )
    .action(async (ids: string[], flags: DecideFlags) => runDecision(terminal, DISCARD, ids, flags));
}

function groupOptions(command: Command): Command {
  return command
    .option('--group <id>', 'all of a group of one cause (gift parked groups), each once; run it again to go on')
    .option('--dry-run', 'show what would be done, and do nothing');
}

function withReason(command: Command): Command {
  return outputOptions(command.option('--reason <text>', 'why; kept with what is recorded'));
}

async function runDecision(
  terminal: Terminal,
  decision: Decision,
  ids: readonly string[],
  flags: DecideFlags,
): Promise<void> {
  refuseOddFlags(decision, ids, flags);
  if (flags.dryRun === true)
    return withLog(terminal, async ({ events }) =>
      showChosen(terminal, decision, await chosen(events, decision, flags), flags),
    );
  const reason = neededReason(flags.reason, decision.word);
  return withStores(terminal, async (opened) => {
    if (decision.word === 'retry') await refuseWhileHeld(opened.events);
    if (decision.word === 'discard' && flags.group !== undefined)
      await finishDiscards(depsOf(terminal, opened), flags.group, commandLineContext(), reason);
    const wanted = ids.length > 0 ? ids : (await chosen(opened.events, decision, flags)).map(({ id }) => id);
    const counted = { recorded: 0, failed: 0 };
    for (const [index, id] of wanted.entries()) {
      if (terminal.signal.aborted)
        throw interrupted(
          `interrupted: ${index} of ${wanted.length} were seen to; those that are left are parked still`,
        );
      await one(
        terminal,
        opened,
        decision,
        { id, reason, alone: wanted.length === 1, json: flags.json === true },
        counted,
      );
    }
    if (flags.group !== undefined) terminal.stderr.write(`${counted.recorded} of ${wanted.length} ${decision.done}\n`);
    if (counted.recorded > 0 && decision.after !== '') terminal.stderr.write(`${decision.after}\n`);
    if (counted.failed > 0)
      throw new CommandFailure(`${counted.failed} of ${wanted.length} could not be ${decision.done}: see above`);
  });
}

/**
 * The parked work that `--group`, or `--all` with its filter, means.
 * @throws CommandFailure where there is none; UnavailableError
 */
async function chosen(
  events: EventStore,
  { done }: Decision,
  { group, ...filter }: DecideFlags,
): Promise<readonly ParkedEntry[]> {
  if (group === undefined) {
    const all = (await parkedEntries(events, filter)).filter(isWaiting);
    if (all.length > 0) return all;
    throw new CommandFailure(
      'nothing is parked that could be retried: gift parked list --state all shows what there is',
    );
  }
  const { known, waiting } = await groupMembers(events, group);
  if (waiting.length > 0) return waiting;
  throw new CommandFailure(
    known
      ? `nothing of this group waits any more, so nothing is ${done}: gift parked list --state all shows what there is`
      : 'there is no such group: gift parked groups lists them',
  );
}

async function showChosen(
  { stdout, stderr }: Terminal,
  { word }: Decision,
  entries: readonly ParkedEntry[],
  { json }: DecideFlags,
): Promise<void> {
  const views = entries.map(parkedView);
  await writeLines(
    stdout,
    views.map((view) =>
      json === true ? jsonLine(view) : `${view.id}: would ${word} ${view.process} ${view.step} of ${view.entity}`,
    ),
  );
  stderr.write(`${views.length} in all; nothing was done\n`);
}

function refuseOddFlags(
  { word }: Decision,
  ids: readonly string[],
  { all, group, dryRun, process, step }: DecideFlags,
): void {
  const many = group === undefined ? '--all' : '--group';
  if (all === true && group !== undefined) throw usageFailure('give --all or --group, not both');
  if ((all === true || group !== undefined) && ids.length > 0) throw usageFailure(`give ids or ${many}, not both`);
  if (all !== true && (process !== undefined || step !== undefined))
    throw usageFailure('--process and --step go with --all');
  if (dryRun === true && ids.length > 0)
    throw usageFailure('--dry-run goes with --group or --all: gift parked show ID shows a single one');
  if (all !== true && group === undefined && ids.length === 0)
    throw usageFailure(`${word} wants ids, ${word === 'retry' ? 'or --all, ' : ''}or --group`);
}

interface Desired {
  readonly id: string;
  readonly reason: string;
  /** Whether no other work is decided: its refusal is then the command's. */
  readonly alone: boolean;
  readonly json: boolean;
}

async function one(
  terminal: Terminal,
  opened: OpenedStores,
  decision: Decision,
  { id, reason, alone, json }: Desired,
  counted: { recorded: number; failed: number },
): Promise<void> {
  const context = commandLineContext();
  try {
    const outcome = await decision.decide(depsOf(terminal, opened), await giftNamed(opened, id), context, reason);
    if (outcome.own !== undefined) counted.recorded++;
    await writeLines(terminal.stdout, [json ? asJson(outcome) : inWords(decision, outcome)]);
  } catch (error) {
    const failure = describeRefusal(error);
    if (alone || !(failure instanceof CommandFailure)) throw failure;
    counted.failed++;
    terminal.stderr.write(`${id.slice(0, 64)}: ${failure.message}\n`);
  }
}

const depsOf = ({ signal }: Terminal, { events, models }: OpenedStores): ParkedDeps => ({
  events,
  parked: models.parked,
  gifts: withLogFallback(events, models, signal).gifts,
});

const viewOf = ({ id, history }: ParkedOutcome): ParkedView => parkedView(parkedEntry(id, history));

/** The outcome as JSON. `recorded`: false where the work had been decided before. */
const asJson = (outcome: ParkedOutcome): string =>
  jsonLine({ ...viewOf(outcome), reason: lastReason(outcome.history), recorded: outcome.own !== undefined });

function inWords({ done, already }: Decision, outcome: ParkedOutcome): string {
  const { id, process, step, entity, times } = viewOf(outcome);
  return `${id}: ${process} ${step} of ${entity} ${outcome.own === undefined ? already : done} (parked ${times} ${times === 1 ? 'time' : 'times'} in a row)`;
}
