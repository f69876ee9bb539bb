import { Command } from 'commander';
import { waitingGroups } from '../../ops/parked/decideGroup.js';
import { withLog } from '../engines.js';
import { outputOptions } from '../exports.js';
import { blockLines, examples, jsonLine } from '../output.js';
import { type Terminal, writeLines } from '../terminal.js';

/** Columns where the terminal does not say how many it has. */
const COLUMNS = 80;

export function parkedGroupsCommand(terminal: Terminal): Command {
  const command = new Command('groups')
    .summary('parked work in groups of one cause')
    .description(
      'Lists what waits for a person by process manager, step and cause, the largest group first: how many, the first, the last, and an example.\n' +
        'Causes that differ in ids, numbers or times alone are one. retry and discard take a group by --group.',
    );
  return outputOptions(command, { csv: false })
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
