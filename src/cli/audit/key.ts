/** `gift audit key`: the verifier keys that check the log's checkpoints and proofs. */
import { Command } from 'commander';
import { verifierKeys } from '../../ops/evidence/index.js';
import { findSealKeys } from '../../service/keys.js';
import { withLog } from '../engines.js';
import { examples } from '../output.js';
import { CommandFailure, type Terminal, writeLines } from '../terminal.js';

export function auditKeyCommand(terminal: Terminal): Command {
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
