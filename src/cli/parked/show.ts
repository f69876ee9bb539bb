/** `gift parked show ID`: one piece of parked work with its events. */
import { Command } from 'commander';
import { eventBlocks } from '../../ops/history/eventRows.js';
import { type EventView, eventView } from '../../ops/history/eventView.js';
import { knownInLog } from '../../ops/history/withLogFallback.js';
import { isSettled } from '../../ops/parked/parkedSettled.js';
import { parkedEntry, parkedView, type ParkedView } from '../../ops/parked/parkedView.js';
import { findParked } from '../../commands/parkedWork.js';
import { withStores } from '../engines.js';
import { outputOptions } from '../exports.js';
import { blockLines, jsonLine } from '../output.js';
import { toldRefusal } from '../refusals.js';
import { type Terminal, writeLines } from '../terminal.js';

export function parkedShowCommand(terminal: Terminal): Command {
  const command = new Command('show')
    .summary('show one piece of parked work with its events')
    .description('Shows parked work: each time it was parked and why, who retried or discarded it and why.')
    .argument('<id>', 'its id, or that of its gift (or shortcode), transaction, refund or dispute');
  return outputOptions(command, { csv: false })
    .addHelpText(
      'after',
      `
Example:
  $ gift parked show 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5`,
    )
    .action(async (id: string, { json }: { readonly json?: true }) => {
      const { found, settled } = await withStores(
        terminal,
        async ({ events, models }) => {
          const work = await findParked(
            { events, parked: models.parked, gifts: knownInLog(events, models, terminal.signal).gifts },
            id,
          );
          return { found: work, settled: await isSettled(events, work) };
        },
        { onlyReads: true },
      ).catch(toldRefusal);
      const view = parkedView(parkedEntry(found.id, found.history));
      const events = found.history.map((event) => eventView(event, { personal: false }));
      await writeLines(
        terminal.stdout,
        json === true
          ? [jsonLine({ ...view, settled, events })]
          : inWords(view, settled, events, terminal.stdout.columns),
      );
    });
}

const WHAT_NEXT: Readonly<Record<ParkedView['state'], (view: ParkedView, settled: boolean) => string>> = {
  parked: ({ id }) => `it waits for a person: gift parked retry ${id} --reason "<why>", or gift parked discard`,
  retried: (_, settled) =>
    settled
      ? 'it is over'
      : 'its process manager has it again and is not through; if it fails again it is parked again',
  discarded: () => 'nobody will do it',
};

function inWords(
  view: ParkedView,
  settled: boolean,
  events: readonly EventView[],
  columns: number | undefined,
): string[] {
  const { id, process, step, entity, transaction_id, state, cause, times } = view;
  const about = [
    `parked work ${id}: ${process} ${step} of ${entity}${entity === transaction_id ? '' : ` (transaction ${transaction_id})`}`,
    `${state}, after being parked ${times} ${times === 1 ? 'time' : 'times'} in a row; ${WHAT_NEXT[state](view, settled)}`,
    `cause: ${cause}`,
  ];
  return [
    ...blockLines(
      about.map((head) => ({ head, more: [] })),
      columns,
    ),
    '',
    ...blockLines(eventBlocks(events), columns),
    '',
    `gift history ${transaction_id} shows all that happened around it`,
  ];
}
