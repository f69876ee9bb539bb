import { Command } from 'commander';
import type { Terminal } from '../terminal.js';
import { auditAccessCommand } from './access.js';
import { auditCheckCommand } from './check.js';
import { auditEvidenceCommand } from './evidence.js';
import { auditKeyCommand } from './key.js';
import { auditProveCommand } from './prove.js';
import { auditRedemptionsCommand } from './redemptions.js';
import { auditTotalsCommand } from './totals.js';
import { auditVerifyCommand } from './verify.js';
import { examples } from '../output.js';

export function auditCommand(terminal: Terminal): Command {
  return new Command('audit')
    .summary('export redemptions and totals, show who saw what, verify the log')
    .description(
      'What auditors ask for: who redeemed what, totals to the penny, who saw what, whether anything was altered. Whatever is shown of events leaves a record of who saw it.',
    )
    .addCommand(auditRedemptionsCommand(terminal))
    .addCommand(auditTotalsCommand(terminal))
    .addCommand(auditAccessCommand(terminal))
    .addCommand(auditProveCommand(terminal))
    .addCommand(auditCheckCommand(terminal))
    .addCommand(auditVerifyCommand(terminal))
    .addCommand(auditKeyCommand(terminal))
    .addCommand(auditEvidenceCommand(terminal))
    .addHelpText('after', examples('gift audit redemptions --from 2026-05-01 --to 2026-05-31 --merchant m1 > may.csv'));
}
