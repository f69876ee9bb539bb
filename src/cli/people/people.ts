import { Command } from 'commander';
import { examples } from '../output.js';
import type { Terminal } from '../terminal.js';
import { eraseCommand } from './erase.js';
import { verifyErasureCommand } from './verifyErasure.js';

export function peopleCommand(terminal: Terminal): Command {
  const group = new Command('people')
    .summary('erase persons')
    .description('What support does for persons whose data is kept.')
    .addHelpText('after', examples('gift people erase u42 --reason "asked for it by letter of 2 May"'));
  for (const make of [eraseCommand, verifyErasureCommand]) group.addCommand(make(terminal));
  return group;
}
