import { Command } from 'commander';
import { type Terminal, CommandFailure, writeLines } from '../terminal.js';
import { auditAccessCommand } from './access.js';
import { auditCheckCommand } from './check.js';
import { auditRedemptionsCommand } from './redemptions.js';
import { auditTotalsCommand } from './totals.js';
import { auditVerifyCommand } from './verify.js';
import { examples, jsonLine, tableLines, textLines } from '../output.js';
import {
  verifierKeys,
  type EvidenceView,
  evidenceView,
  openTileFolder,
  EvidenceError,
} from '../../ops/evidence/index.js';
import { findSealKeys } from '../../service/keys.js';
import { withLog, readStores } from '../engines.js';
import { treeDir } from '../../service/tree.js';
import { outputOptions, cliAccess, reasonOf } from '../exports.js';
import { keyedHash } from '../../domain/keyedHash.js';
import { proveGifts } from '../../ops/history/giftProofs.js';
import { namedGifts } from '../../ops/history/giftHistory.js';
import { withLogFallback } from '../../ops/history/withLogFallback.js';
import { giftNamed } from '../giftNamed.js';

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

/** `gift audit evidence`: the latest signed heads and their witnesses (docs/support.md#evidence-at-a-glance). */
function auditEvidenceCommand(terminal: Terminal): Command {
  const command = new Command('evidence')
    .summary('show the latest signed heads and their witnesses')
    .description(
      'Shows the latest heads that were signed over the log, the latest first, and which witnesses have cosigned the published one. Whether the log is what was signed, gift audit verify tells.',
    );
  return outputOptions(command)
    .addHelpText('after', examples('gift audit evidence', 'gift audit evidence --json'))
    .action(async ({ json }: { readonly json?: true }) => {
      const view = await withLog(terminal, async ({ events, config }) =>
        evidenceView(
          events,
          openTileFolder(treeDir(config), events.logId),
          config.sealWitnesses.map(({ key }) => key),
        ),
      );
      await writeLines(terminal.stdout, json === true ? [jsonLine(view)] : describe(view, terminal.stdout.columns));
    });
}

function describe(
  { origin, heads, not_cosigned_by, uncovered_since, last_verified }: EvidenceView,
  columns: number | undefined,
): string[] {
  if (origin === null) return ['nothing is signed yet'];
  const rows = heads.map(({ at, size, root, published, cosigned_by }) => [
    at,
    size ?? 'not a head',
    root ?? '',
    published ? 'published' : '',
    cosigned_by.map(({ witness }) => witness).join(' '),
  ]);
  const covered = uncovered_since === null ? 'every event has a head' : `events since ${uncovered_since} have no head`;
  const missing = not_cosigned_by.length === 0 ? '' : `; not cosigned by ${not_cosigned_by.join(', ')}`;
  return [
    ...tableLines(['signed', 'events', 'root', '', 'cosigned by'], rows, columns),
    '',
    ...textLines(`${origin}: ${covered}${missing}; ${verified(last_verified)}; next: gift audit verify`, columns),
  ];
}

function verified(last: EvidenceView['last_verified']): string {
  if (last === null) return 'no verification is recorded';
  return `found as it was signed at ${last.at} by ${last.by ?? 'somebody'} (${last.events} events)`;
}

interface ProveFlags {
  readonly reason?: string;
}

/** `gift audit prove` (docs/evidence.md#bundles). */
function auditProveCommand(terminal: Terminal): Command {
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
  await readStores(terminal, async (opened) => {
    const { events, stored, models, subjects, config } = opened;
    const gift = await giftNamed(opened, identifier);
    const known = withLogFallback(events, models, terminal.signal);
    const deps = { events, models: known, hash: keyedHash(Buffer.alloc(0)), subjects };
    const found = await namedGifts(deps, gift);
    if (found === undefined) throw new CommandFailure(`nothing is known of ${JSON.stringify(identifier.slice(0, 64))}`);
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
  });
}
