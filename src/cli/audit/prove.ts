/** `gift audit prove` (docs/evidence.md#bundles). */
import { Command } from 'commander';
import { keyedHash } from '../../domain/keyedHash.js';
import { proveGifts } from '../../ops/history/giftProofs.js';
import { namedGifts } from '../../ops/history/giftHistory.js';
import { withLogFallback } from '../../ops/history/withLogFallback.js';
import { EvidenceError, openTileFolder } from '../../ops/evidence/index.js';
import { treeDir } from '../../service/tree.js';
import { withStores } from '../engines.js';
import { cliAccess, reasonOf } from '../exports.js';
import { giftNamed } from '../giftNamed.js';
import { examples } from '../output.js';
import { CommandFailure, type Terminal, writeLines } from '../terminal.js';

interface ProveFlags {
  readonly reason?: string;
}

export function auditProveCommand(terminal: Terminal): Command {
  return new Command('prove')
    .summary("write a file that proves a gift's events, for others to check offline")
    .description(
      `Writes the events of a gift's life, with proofs that they stand in the log of its latest signed checkpoint, to standard output. Secret and personal fields are left as salted hashes.
Who gets the file checks it with gift audit check, and the log's key from elsewhere.`,
    )
    .argument('<gift>', "the gift's id or shortcode, the id of one of its redemptions, or its transaction's")
    .option('--reason <text>', 'why; kept with the record of who saw what')
    .addHelpText('after', examples('gift audit prove 5f2c9d6a1b7e4c80d3a1 > gift.json'))
    .action(async (gift: string, flags: ProveFlags) => runProve(terminal, gift, flags));
}

async function runProve(terminal: Terminal, identifier: string, flags: ProveFlags): Promise<void> {
  const reason = reasonOf(flags.reason);
  await withStores(
    terminal,
    async (opened) => {
      const { events, stored, models, subjects, config } = opened;
      const gift = await giftNamed(opened, identifier);
      const known = withLogFallback(events, models, terminal.signal);
      const deps = { events, models: known, hash: keyedHash(Buffer.alloc(0)), subjects };
      const found = await namedGifts(deps, gift);
      if (found === undefined)
        throw new CommandFailure(`nothing is known of ${JSON.stringify(identifier.slice(0, 64))}`);
      const folder = openTileFolder(treeDir(config), stored.logId);
      const proven = await proveGifts({ stored, folder }, found).catch((error: unknown) => {
        if (error instanceof EvidenceError)
          throw new CommandFailure(`${error.message}: gift audit verify says what was altered`);
        throw error;
      });
      if (proven === undefined)
        throw new CommandFailure(
          'no checkpoint covers the gift yet: the service signs one some seconds after an event, so repeat this then',
        );
      const { events: covered, file, uncovered } = proven;
      await cliAccess(events).shown(
        'gift audit prove',
        { gift, transactionId: found.transactionId, ...flags },
        { personal: false, reason },
        covered.length,
      );
      await writeLines(terminal.stdout, [JSON.stringify(file, null, 2)]);
      if (uncovered > 0)
        await writeLines(terminal.stderr, [
          `gift: ${uncovered} events are left out, since no checkpoint covers them yet: repeat this in some seconds`,
        ]);
    },
    { onlyReads: true },
  );
}
