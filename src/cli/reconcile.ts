import { Command } from 'commander';
import { systemMs } from '../lib/world.js';
import {
  type DayReport,
  dayOf,
  reconcileDay,
  type ReconciledDay,
  reconciliationReport,
} from '../ops/reconciliation/reconcileDay.js';
import type { Difference, Sums } from '../ops/reconciliation/reconcile.js';
import { DEFAULT_ZONE, TimeError } from '../ops/ranges/times.js';
import { pounds } from '../domain/money.js';
import { providersLedger } from '../providers/payments/ledgers.js';
import { RetryLaterError } from '../messages/workerFailure.js';
import { ProviderError } from '../providers/providerErrors.js';
import { readStores } from './engines.js';
import { cliAccess } from './exports.js';
import { jsonLine, tableLines } from './output.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from './terminal.js';

interface ReconcileFlags {
  readonly day: string;
  readonly timeZone: string;
  readonly json?: true;
}

export function reconcileCommand(terminal: Terminal): Command {
  return new Command('reconcile')
    .summary('compare a day of the payment provider with the log, to the penny')
    .description(
      `Compares the provider's own list of charges and refunds, and the prepaid wallets, with what the log says of a day, and lists every difference:
missing here, missing there, another amount or currency, another state. Nothing is changed.`,
    )
    .requiredOption('--day <day>', 'the day, YYYY-MM-DD; one that is not over ends now')
    .option('--time-zone <zone>', 'whose day', DEFAULT_ZONE)
    .option('--json', 'one JSON object a line on standard output: each difference, then a report')
    .addHelpText(
      'after',
      `
Examples:
  $ gift payments reconcile --day 2026-05-04
  $ gift payments reconcile --day 2026-05-04 --time-zone UTC --json

Exit codes: 0 all agrees; 1 there is a difference.`,
    )
    .action(async (flags: ReconcileFlags) => runReconcile(terminal, flags));
}

async function runReconcile(terminal: Terminal, flags: ReconcileFlags): Promise<void> {
  const json = flags.json === true;
  const { day, report } = await readStores(terminal, async ({ config, events, store }) => {
    const day = dayOf(flags.day, flags.timeZone, { now: systemMs(), settings: config });
    const viewing = { personal: false, reason: null };
    const access = await cliAccess(events).start('gift payments reconcile', { ...flags }, viewing);
    let shown = 0;
    let complete = false;
    try {
      const onDifference = async (difference: Difference): Promise<void> => {
        if (!json && shown === 0) await writeLines(terminal.stdout, ['differences:']);
        shown++;
        await writeLines(terminal.stdout, [
          json ? jsonLine({ action: 'difference', ...difference }) : inWords(difference),
        ]);
      };
      const report = await reconcileDay(
        { events, ledger: (await providersLedger(config, store.records))() },
        day,
        onDifference,
        terminal.signal,
      );
      complete = true;
      return { day, report };
    } finally {
      await access.end(shown, null, complete);
    }
  }).catch((error: unknown) => {
    if (terminal.signal.aborted) throw interrupted('interrupted');
    if (error instanceof TimeError) throw usageFailure(error.message);
    if (error instanceof ProviderError || error instanceof RetryLaterError)
      throw new CommandFailure(`${error.message}: try again`);
    throw error;
  });
  const differences = report.ledgers.reduce((sum, one) => sum + one.differences, 0);
  await writeLines(
    terminal.stdout,
    json ? [jsonLine(reconciliationReport(day, report, differences))] : summary(day, report, differences),
  );
  if (differences > 0) throw new CommandFailure(inNumber(differences));
}

const inNumber = (differences: number): string => `${differences} ${differences === 1 ? 'difference' : 'differences'}`;

function inWords({ what, kind, provider, id, transaction_id, here, there, detail }: Difference): string {
  const side = (where: string, one: { readonly amount: number | null; readonly at: string } | null): string =>
    one === null ? `not ${where}` : `${where} ${one.amount === null ? '' : `${pounds(one.amount)} `}at ${one.at}`;
  return `  ${what.replace('_', ' ')}: ${provider} ${kind} ${id} of transaction ${transaction_id ?? 'unknown'}; ${side('here', here)}, ${side('there', there)}: ${detail}`;
}

function summary(
  { day, timeZone, from, to }: ReconciledDay,
  { ledgers, uncompared }: DayReport,
  differences: number,
): string[] {
  const row = (provider: string, where: string, sums: Sums): (string | number)[] => [
    provider,
    where,
    sums.charges,
    pounds(sums.charged),
    sums.refunds,
    pounds(sums.refunded),
  ];
  const rows = ledgers.flatMap(({ provider, here, there }) => [
    row(provider, 'log', here),
    row(provider, 'provider', there),
  ]);
  for (const { provider, ...sums } of uncompared) rows.push(row(provider, 'log, not compared', sums));
  const lookedUp = ledgers.reduce((sum, one) => sum + one.looked_up, 0);
  return [
    `day ${day} of ${timeZone}: ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`,
    ...tableLines(['provider', 'by', 'charges', 'charged', 'refunds', 'refunded'], rows),
    ...(lookedUp === 0 ? [] : [`${lookedUp} were recorded much later than made, or on another day: looked up`]),
    differences === 0 ? 'all agrees, to the penny' : inNumber(differences),
  ];
}
