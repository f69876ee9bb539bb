import { Command } from 'commander';
import { eventBlocks } from '../../ops/history/eventRows.js';
import { withLogFallback } from '../../ops/history/withLogFallback.js';
import { type ParkedView, type ParkedWithEvents, parkedWithEvents } from '../../ops/parked/parkedView.js';
import { findParked } from '../../commands/findParked.js';
import { withStores } from '../engines.js';
import { giftNamed } from '../giftNamed.js';
import { outputOptions } from '../exports.js';
import { blockLines, examples, jsonLine } from '../output.js';
import { throwDescribed } from '../refusals.js';
import { type Terminal, writeLines } from '../terminal.js';

export function parkedShowCommand(terminal: Terminal): Command {
  const command = new Command('show')
    .summary('show one piece of parked work with its events')
    .description('Shows parked work: each time it was parked and why, who retried or discarded it and why.')
    .argument('<id>', 'its id, or that of its gift (or shortcode), transaction, refund or dispute');
  return outputOptions(command, { csv: false })
    .addHelpText('after', examples('gift parked show 3f0b8a1de29c4f7d5a6b90c1e2d3f4a5'))
    .action(async (id: string, { json }: { readonly json?: true }) => {
      const work = await withStores(
        terminal,
        async (opened) => {
          const { events, models } = opened;
          const { gifts } = withLogFallback(events, models, terminal.signal);
          const found = await findParked({ events, parked: models.parked, gifts }, await giftNamed(opened, id));
          return parkedWithEvents(events, found, { personal: false });
        },
        { onlyReads: true },
      ).catch(throwDescribed);
      await writeLines(terminal.stdout, json === true ? [jsonLine(work)] : inWords(work, terminal.stdout.columns));
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

function inWords(work: ParkedWithEvents, columns: number | undefined): string[] {
  const { id, process, step, entity, transaction_id, state, cause, times, events } = work;
  const about = [
    `parked work ${id}: ${process} ${step} of ${entity}${entity === transaction_id ? '' : ` (transaction ${transaction_id})`}`,
    `${state}, after being parked ${times} ${times === 1 ? 'time' : 'times'} in a row; ${WHAT_NEXT[state](work)}`,
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
