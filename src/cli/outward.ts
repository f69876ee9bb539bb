/** `gift hold` and `gift resume`: which log charges, sends and delivers (docs/design.md#outward-work). */
import { Command } from 'commander';
import { changeOutwardWork, outwardState } from '../ops/outward/outwardWork.js';
import type { EventStore } from '../ports/eventStore.js';
import { commandLineContext, neededReason, outputOptions } from './exports.js';
import { withLog } from './engines.js';
import { examples, jsonLine } from './output.js';
import { CommandFailure, type Terminal, writeLines } from './terminal.js';

interface Flags {
  readonly reason?: string;
  readonly json?: true;
}

export function resumeCommand(terminal: Terminal): Command {
  const command = new Command('resume')
    .summary('charge, send and deliver again, after a restore, a copy or a hold')
    .description(
      `Ends the wait of a log that was restored, copied or held: from now on its services charge, refund, notify, remind, and deliver webhooks.
Before, see that no other service works on the same gifts, and compare with the payment provider (gift payments reconcile): purchases that were open in the log go on. Webhooks begin with what happens from now on; owners ask for the rest (recover).`,
    )
    .addHelpText('after', examples('gift resume --reason "restored after the disk died; payments are reconciled"'));
  return withFlags(command).action(async (flags: Flags) => change(terminal, 'resumed', flags));
}

export function holdCommand(terminal: Terminal): Command {
  const command = new Command('hold')
    .summary('charge, send and deliver nothing until it is resumed')
    .description(
      `Holds the outward work of a log, as a restore and gift copy do by themselves: for a data folder that was copied as files, and for an EventStoreDB that was put back, before a service starts there.
Running services notice it at once and finish what is under way. Look-ups and redemptions go on; purchases are refused (503).`,
    )
    .addHelpText('after', examples('DATA_DIR=./copy gift hold --reason "a copy of the folder, for a drill"'));
  return withFlags(command).action(async (flags: Flags) => change(terminal, 'held', flags));
}

const withFlags = (command: Command): Command =>
  outputOptions(command.option('--reason <text>', 'why; kept in the log'));

async function change(terminal: Terminal, to: 'held' | 'resumed', { reason, json }: Flags): Promise<void> {
  const why = neededReason(reason, to === 'held' ? 'hold' : 'resume');
  await withLog(terminal, async ({ events }) => {
    const changed = await changeOutwardWork(events, to, why, commandLineContext());
    const state = to === 'held' ? 'charges, sends and delivers nothing' : 'charges, sends and delivers';
    await writeLines(terminal.stdout, [
      json === true
        ? jsonLine({ action: 'done', log: events.logId, outward_work: to, changed })
        : `log ${events.logId} ${state}${changed ? '' : ' already'}`,
    ]);
  });
}

/**
 * Lines for the report on a copied or restored log. Empty where no outward work is held: no service has run on the
 * original log.
 */
export const heldLines = (held: string | undefined, where = ''): readonly string[] =>
  held === undefined
    ? []
    : [
        `it charges, sends and delivers nothing, since ${held}: once payments are reconciled and no other service works on the same gifts, ${where}gift resume --reason "…"`,
      ];

/**
 * Refuses a request that only outward work carries out, while that is held.
 * @throws CommandFailure, UnavailableError
 */
export async function refuseWhileHeld(events: Pick<EventStore, 'logId' | 'read'>): Promise<void> {
  const { held } = await outwardState(events);
  if (held !== undefined)
    throw new CommandFailure(`nothing is charged or sent here, since ${held}: gift resume ends that; nothing was done`);
}
