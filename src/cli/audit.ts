/** `gift audit …`: what auditors export. */
import { Command } from 'commander';
import { auditAccessCommand } from './auditAccess.js';
import { auditRedemptionsCommand } from './auditRedemptions.js';
import { auditTotalsCommand } from './auditTotals.js';
import type { Terminal } from './terminal.js';

/** The subcommand, with those within it. */
export function auditCommand(terminal: Terminal): Command {
  return new Command('audit')
    .summary('export redemptions and totals, and who saw what')
    .description('What auditors ask for: who redeemed what, totals to the penny, who saw what. Whatever is shown leaves a record of who saw it.')
    .addCommand(auditRedemptionsCommand(terminal))
    .addCommand(auditTotalsCommand(terminal))
    .addCommand(auditAccessCommand(terminal))
    .addHelpText('after', `
Example:
  $ gift audit redemptions --from 2026-05-01 --to 2026-05-31 --merchant m1 > may.csv`);
}
