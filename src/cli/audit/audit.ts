import { Command } from 'commander';
import { type Terminal, CommandFailure, writeLines } from '../terminal.js';
import { auditAccessCommand } from './access.js';
import { auditCheckCommand } from './check.js';
import { auditEvidenceCommand } from './evidence.js';
import { auditProveCommand } from './prove.js';
import { auditRedemptionsCommand } from './redemptions.js';
import { auditTotalsCommand } from './totals.js';
import { auditVerifyCommand } from './verify.js';
import { examples } from '../output.js';
import { verifierKeys } from '../../ops/evidence/index.js';
import { findSealKeys } from '../../service/keys.js';
import { withLog } from '../engines.js';

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

/** `gift audit key`: the verifier keys that check the log's checkpoints and proofs. */
function auditKeyCommand(terminal: Terminal): Command {
  return new Command('key')
    .summary("write the key that checks the log's checkpoints and proofs")
    .description(
      `Writes the log's verifier keys, one for each of SEAL_KEY: nothing in them is secret. Auditors, merchants and witnesses should get them from somebody they trust, not with a proof.`,
    )
    .addHelpText('after', examples('gift audit key'))
    .action(async () => runKey(terminal));
}

async function runKey(terminal: Terminal): Promise<void> {
  await withLog(terminal, async ({ stored, config }) => {
    const sealKeys = findSealKeys(config);
    if (sealKeys === undefined)
      throw new CommandFailure('the key that signs is not here: set SEAL_KEY, or DATA_DIR to the folder that has it');
    const keys = await verifierKeys(stored, sealKeys);
    if (keys === undefined)
      throw new CommandFailure(
        'nothing is signed yet: the service signs a checkpoint some seconds after its first event',
      );
    await writeLines(terminal.stdout, keys);
  });
}
