import { Command } from 'commander';
import type { Terminal } from '../terminal.js';
import { discardCommand, retryCommand } from './decide.js';
import { parkedGroupsCommand, parkedListCommand, parkedShowCommand } from './list.js';
import { examples } from '../output.js';

export function parkedCommand(terminal: Terminal): Command {
  const group = new Command('parked')
    .summary('parked work: list, groups, show, retry, discard')
    .description(
      'What the service could not do and gave up, so that it waits for a person: charges, issues, messages, refunds, disputes. All else goes on meanwhile.',
    )
    .addHelpText('after', examples('gift parked list'));
  for (const make of [parkedListCommand, parkedGroupsCommand, parkedShowCommand, retryCommand, discardCommand])
    group.addCommand(make(terminal));
  return group;
}
