import { Command, CommanderError } from 'commander';
import { VERSION } from '../lib/version.js';
import { ConfigError } from '../service/config.js';
import { diskRemedy } from '../service/startFailure.js';
import { LogSealedError } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { auditCommand } from './audit/audit.js';
import { backupCommand } from './backup.js';
import { copyCommand } from './copy.js';
import { listenCommand } from './developers/listen.js';
import { triggerCommand } from './developers/trigger.js';
import { diagnoseCommand } from './diagnose.js';
import { giftsCommand } from './gifts.js';
import { historyCommand } from './history.js';
import { importCommand } from './import.js';
import { keysCommand } from './keys.js';
import { logCommand } from './log.js';
import { holdCommand, resumeCommand } from './outward.js';
import { parkedCommand } from './parked/parked.js';
import { peopleCommand } from './people/people.js';
import { projectionsCommand } from './projections/projections.js';
import { purchaseListCommand } from './purchases.js';
import { reconcileCommand } from './reconcile.js';
import { refundCommand, refundsCommand } from './refund.js';
import { restoreCommand } from './restore.js';
import { CommandFailure, EXIT, type Terminal } from './terminal.js';
import { examples } from './output.js';
import { wrapped } from '../lib/wrappedText.js';
import { webhooksCommand } from './webhooks.js';
import { witnessCommand } from './witness.js';

export function program(terminal: Terminal): Command {
  const gift = new Command('gift')
    .version(VERSION, '--version', 'show the release')
    .description(
      "Gift commerce from the command line. Settings come from the same environment variables as the service's (DATA_DIR, HASH_KEY …);\nit may run beside a running service.",
    )
    .addHelpText(
      'after',
      `
Example:
  $ gift import examples/demo.json

Exit codes: 0 done; 1 refused, failed or found wrong; 2 wrong usage; 130 interrupted.`,
    );
  for (const make of COMMANDS) gift.addCommand(make(terminal));
  for (const command of withInner(gift)) {
    command.exitOverride();
    command.configureOutput({
      writeOut: (text) => terminal.stdout.write(fitted(text, terminal.stdout.columns)),
      writeErr: (text) => terminal.stderr.write(text),
    });
    command.showHelpAfterError('(--help shows how it is used)');
  }
  return gift;
}

const COMMANDS = [
  diagnoseCommand,
  importCommand,
  copyCommand,
  backupCommand,
  restoreCommand,
  resumeCommand,
  holdCommand,
  keysCommand,
  paymentsCommand,
  purchasesCommand,
  giftsCommand,
  parkedCommand,
  peopleCommand,
  webhooksCommand,
  historyCommand,
  logCommand,
  auditCommand,
  projectionsCommand,
  witnessCommand,
  listenCommand,
  triggerCommand,
];

function paymentsCommand(terminal: Terminal): Command {
  return new Command('payments')
    .summary('compare payments with their provider')
    .description('What auditors and support do with payments.')
    .addCommand(reconcileCommand(terminal))
    .addHelpText('after', examples('gift payments reconcile --day 2026-05-04'));
}

function purchasesCommand(terminal: Terminal): Command {
  return new Command('purchases')
    .summary('find and refund purchases')
    .description('What support does with purchases.')
    .addCommand(purchaseListCommand(terminal))
    .addCommand(refundCommand(terminal))
    .addCommand(refundsCommand(terminal))
    .addHelpText(
      'after',
      examples(
        'gift purchases list --product p1 --from 2026-05-04 --to 2026-05-04',
        'gift purchases refund 6ec0bd7f11c043da975e2a8ad9ebae0b --reason "bought twice by mistake"',
      ),
    );
}

const HELP_COLUMNS = 80;

/** Help, broken at words. Indented lines stay whole: examples are copied, and all others fit already. */
const fitted = (help: string, columns = HELP_COLUMNS): string =>
  help
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrapped(line, columns, '', '')))
    .join('\n');

function withInner(command: Command): Command[] {
  return [command, ...command.commands.flatMap(withInner)];
}

/** Runs a command. `args`: its arguments, without node and script. @returns the exit code */
export async function run(terminal: Terminal, args: readonly string[]): Promise<number> {
  try {
    await program(terminal).parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    terminal.stderr.write(`gift: ${messageOf(error)}\n`);
    return error instanceof CommandFailure ? error.exitCode : EXIT.failed;
  }
}

function messageOf(error: unknown): string {
  if (error instanceof CommandFailure || error instanceof ConfigError || error instanceof LogSealedError)
    return error.message;
  if (error instanceof UnavailableError) return `${error.message}: ${diskRemedy(error) ?? 'try again'}`;
  return error instanceof Error ? error.message : String(error);
}
