/** `gift projections …`: how the read models stand, and putting them right (decisions 11). */
import { Command } from 'commander';
import { rebuildCommand, rollbackCommand } from './projectionsRebuild.js';
import { statusCommand } from './projectionsStatus.js';
import { repairCommand, verifyCommand } from './projectionsVerify.js';
import type { Terminal } from './terminal.js';

/** The group. */
export function projectionsCommand(terminal: Terminal): Command {
  const group = new Command('projections')
    .summary('read models: status, rebuild, verification, repair')
    .description('Shows how the read models stand, and puts them right, while the service serves or without it.')
    .addHelpText('after', `
Example:
  $ gift projections status`);
  for (const make of [statusCommand, rebuildCommand, rollbackCommand, verifyCommand, repairCommand]) group.addCommand(make(terminal));
  return group;
}
