/** `gift projections` (docs/commands.md). */
import { Command } from 'commander';
import type { Terminal } from '../terminal.js';
import { rebuildCommand, rollbackCommand } from './rebuild.js';
import { statusCommand } from './status.js';
import { repairCommand, verifyCommand } from './verify.js';
import { examples } from '../output.js';

export function projectionsCommand(terminal: Terminal): Command {
  const group = new Command('projections')
    .summary('read models: status, rebuild, verification, repair')
    .description('Shows how the read models stand, and puts them right, while the service serves or without it.')
    .addHelpText('after', examples('gift projections status'));
  for (const make of [statusCommand, rebuildCommand, rollbackCommand, verifyCommand, repairCommand])
    group.addCommand(make(terminal));
  return group;
}
