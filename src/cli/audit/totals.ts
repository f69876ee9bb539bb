import { Command } from 'commander';
import { type TotalsCheck, checkTotals } from '../../ops/totals/checkTotals.js';
import type { Cell } from '../../ops/exports/csv.js';
import type { LogRange } from '../../ops/ranges/range.js';
import { type Sums, type TotalRow, foldTotals, noSums, sumOf, totalsCsv } from '../../ops/totals/totals.js';
import { pounds } from '../../domain/money.js';
import { type OpenedStores, readStores } from '../engines.js';
import { CSV_RULE, type CsvFlags, cliAccess, outputOptions, reasonOf } from '../exports.js';
import { jsonLine, tableLines } from '../output.js';
import { type Progress, progressBar } from '../progress.js';
import { type RangeFlags, describeRange, rangeOf, rangeOptions, zoneOf } from '../ranges.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from '../terminal.js';
import { requestedFilter, filterOptions } from './filters.js';

interface TotalsFlags extends RangeFlags, CsvFlags {
  readonly check?: true;
  readonly reason?: string;
  readonly json?: true;
}

export function auditTotalsCommand(terminal: Terminal): Command {
  const command = new Command('totals')
    .summary('total what was issued, redeemed, refunded and charged back, per merchant and day')
    .description(
      `Folds the log into totals per merchant and day, counted and in pence. What is issued, refunded and charged back is its brand's merchant's,
what is redeemed and taken back the location's; charged back are disputes that were lost. With --check every stream of the transactions and gifts is read and summed anew: both must agree to the penny.`,
    )
    .option('--check', 'hold the totals of all merchants against the streams; exit code 1 where they disagree')
    .option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(rangeOptions(filterOptions(command, ['merchant'])), { csv: true })
    .addHelpText(
      'after',
      `
${CSV_RULE}

Examples:
  $ gift audit totals --from 2026-05-01 --to 2026-05-31
  $ gift audit totals --check --json`,
    )
    .action(async (flags: TotalsFlags) => runTotals(terminal, flags));
}

async function runTotals(terminal: Terminal, flags: TotalsFlags): Promise<void> {
  const reason = reasonOf(flags.reason);
  await readStores(terminal, async (opened) => {
    const { merchant } = await requestedFilter(opened, flags, ['merchant']);
    const range = await rangeOf(opened.events, flags);
    const folding = progressBar(terminal.stderr, { doing: 'folding the log', unit: 'events' });
    const checking = progressBar(terminal.stderr, { doing: 'reading the streams', unit: 'transactions' });
    const { rows: all, check } = await made(terminal, opened, range, flags, { folding, checking })
      .catch((error: unknown) => {
        throw terminal.signal.aborted ? interrupted('interrupted; nothing was shown') : error;
      })
      .finally(() => {
        folding.clear();
        checking.clear();
      });
    const rows = merchant === undefined ? all : all.filter(({ merchant_id }) => merchant_id === merchant);
    const viewing = { personal: false, reason };
    await cliAccess(opened.events).shown('gift audit totals', { ...flags }, viewing, rows.length);
    await writeLines(
      terminal.stdout,
      flags.json === true
        ? jsonOf(rows, range, check)
        : flags.csv === true
          ? await totalsCsv(opened.events, rows, range, flags)
          : tableOf(rows, range, terminal.stdout.columns),
    );
    if (check === undefined) return;
    if (flags.json !== true) await writeLines(terminal.stderr, inWords(check));
    if (!check.agree)
      throw new CommandFailure(
        `log and streams disagree: ${check.differences_found} differences, ${check.faults_found} faults; look at each with gift history`,
      );
  });
}

async function made(
  terminal: Terminal,
  { events, models }: OpenedStores,
  range: LogRange,
  { check, timeZone }: TotalsFlags,
  { folding, checking }: { readonly folding: Progress; readonly checking: Progress },
): Promise<{ readonly rows: readonly TotalRow[]; readonly check?: TotalsCheck }> {
  const { signal } = terminal;
  const zone = zoneOf(timeZone);
  const rows = await foldTotals(events, range, zone, { signal, onProgress: (count) => folding(count, undefined) });
  folding.clear();
  if (check === undefined) return { rows };
  const onBehind = (): void =>
    void terminal.stderr.write('the read model of transactions is behind: the log says which there are\n');
  return {
    rows,
    check: await checkTotals({ events, transactions: models.transactions }, rows, range, zone, {
      signal,
      onBehind,
      onProgress: (count) => checking(count, undefined),
    }),
  };
}

function* jsonOf(rows: readonly TotalRow[], range: LogRange, check: TotalsCheck | undefined): Generator<string> {
  for (const row of rows) yield jsonLine(row);
  yield jsonLine({ action: 'done', sums: sumOf(rows), ...range, check });
}

function tableOf(rows: readonly TotalRow[], range: LogRange, columns: number | undefined): string[] {
  const headings = [
    'day',
    'merchant',
    'issued',
    '£',
    'replaced',
    '£',
    'redeemed',
    '£',
    'unredeemed',
    '£',
    'by support',
    '£',
    'refunded',
    '£',
    'charged back',
    '£',
  ];
  const cells = [...rows.map((row) => [row.day, row.merchant_id, ...shown(row)]), ['all', '', ...shown(sumOf(rows))]];
  return [
    describeRange(range),
    '',
    ...tableLines(headings, cells, columns),
    '',
    'by location: gift audit redemptions --merchant MERCHANT --csv has a line for each redemption, with its location',
  ];
}

function shown(sums: Readonly<Sums>): Cell[] {
  return (Object.keys(noSums()) as (keyof Sums)[]).map((name) =>
    name.endsWith('_value') ? pounds(sums[name]) : sums[name],
  );
}

function* inWords({ agree, transactions, gifts, not_issued_yet, differences, faults }: TotalsCheck): Generator<string> {
  yield `${transactions} transactions and ${gifts} gifts read by their streams, ${not_issued_yet} of them paid for and not issued yet${agree ? ': all agrees to the penny' : ''}`;
  for (const { day, merchant_id, field, log, streams } of differences)
    yield `${day} ${merchant_id} ${field}: ${log} in the log, ${streams} in the streams`;
  for (const { transaction_id, gift_id, fault } of faults)
    yield `transaction ${transaction_id}${gift_id === undefined ? '' : `, gift ${gift_id}`}: ${fault}`;
}
