import { Command } from 'commander';
import { examples } from '../output.js';
import type { Terminal } from '../terminal.js';
import { eraseAgainCommand } from './eraseAgain.js';
import { eraseCommand, erasuresCommand, withdrawErasureCommand } from './erasures.js';
import { findCommand } from './find.js';
import { exportCommand, showCommand } from './records.js';
import { verifyErasureCommand } from './verifyErasure.js';

export function peopleCommand(terminal: Terminal): Command {
  const group = new Command('people')
    .summary('persons: find, show, export, erase')
    .description('What support does for persons whose data is kept.')
    .addHelpText('after', examples('gift people find --phone - --reason "asked by letter of 2 May"'));
  for (const make of [
    findCommand,
    showCommand,
    exportCommand,
    eraseCommand,
    verifyErasureCommand,
    erasuresCommand,
    withdrawErasureCommand,
    eraseAgainCommand,
  ])
    group.addCommand(make(terminal));
  return group;
}
