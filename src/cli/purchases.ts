/** `gift purchases list`: finds purchases by what is known of them. */
import { Command, InvalidArgumentError, Option } from 'commander';
import { pounds } from '../domain/money.js';
import { TRANSACTION_STATUSES, type TransactionStatus } from '../domain/purchase/status.js';
import { csvWriter } from '../ops/exports/csv.js';
import { PURCHASE_FILTERS, type PurchaseFilter, unknownPurchaseFilter } from '../ops/purchases/purchaseFilter.js';
import { PURCHASE_COLUMNS, purchaseCells, type PurchaseRow } from '../ops/purchases/purchaseRows.js';
import { type PurchaseBatch, readPurchases } from '../ops/purchases/readPurchases.js';
import { readStores } from './engines.js';
import { CSV_RULE, type CsvFlags, cliAccess, LOCAL_DAY_RULE, outputOptions, reasonOf } from './exports.js';
import { examples, jsonLine, tableLines, textLines } from './output.js';
import { type RangeFlags, rangeOptions, timesOf, zoneOf } from './ranges.js';
import { CommandFailure, interrupted, type Terminal, writeLines, writeText } from './terminal.js';

interface ListFlags extends RangeFlags, CsvFlags {
  readonly buyer?: string;
  readonly product?: string;
  readonly status?: TransactionStatus;
  readonly min?: number;
  readonly max?: number;
  readonly referenceId?: string;
  readonly charge?: string;
  readonly reason?: string;
  readonly json?: true;
}

/** Most purchases of a table, which is held in memory. */
const MOST_LINES = 1_000;

export function purchaseListCommand(terminal: Terminal): Command {
  const command = new Command('list')
    .summary('find purchases by buyer, product, price, day, status or charge')
    .description(
      `Lists purchases, the latest first, with what was paid and given back. All filters must match. A table has at most ${MOST_LINES}; CSV and JSON have all, with money in pence. A search for a charge takes one reading of the log.`,
    )
    .option('--buyer <id>', `only ${PURCHASE_FILTERS.buyer}`)
    .option('--product <id>', `only ${PURCHASE_FILTERS.product}`)
    .addOption(new Option('--status <status>', `only ${PURCHASE_FILTERS.status}`).choices(TRANSACTION_STATUSES))
    .option('--min <pence>', `only ${PURCHASE_FILTERS.min}`, pence)
    .option('--max <pence>', `only ${PURCHASE_FILTERS.max}`, pence)
    .option('--reference-id <text>', `only ${PURCHASE_FILTERS.reference_id}`)
    .option('--charge <id>', `only ${PURCHASE_FILTERS.charge}`)
    .option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(rangeOptions(command), { csv: true })
    .addHelpText(
      'after',
      `
In CSV the column product_name is for people: it is the name of the day. ${CSV_RULE}
${LOCAL_DAY_RULE}
${examples(
  'gift purchases list --product p1 --from 2026-05-04 --to 2026-05-04 --max 100',
  'gift purchases list --buyer u42 --status charged --csv > u42.csv',
)}`,
    )
    .action(async (flags: ListFlags) => runList(terminal, flags));
}

function pence(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('Give a whole number of pence.');
  return Number(text);
}

async function runList(terminal: Terminal, flags: ListFlags): Promise<void> {
  const reason = reasonOf(flags.reason);
  const { buyer, product, status, min, max, charge, referenceId: reference_id } = flags;
  const filter: PurchaseFilter = { buyer, product, status, min, max, charge, reference_id, ...timesOf(flags) };
  await readStores(terminal, async ({ events, models }) => {
    const unknown = await unknownPurchaseFilter(events, filter);
    if (unknown !== undefined) throw new CommandFailure(`--${unknown.name}: ${unknown.words}`);
    const asked = { ...flags, ...(buyer === undefined ? {} : { person: buyer }) };
    const record = await cliAccess(events).start('gift purchases list', asked, { personal: false, reason });
    const batches = readPurchases({ events, models, withoutBuilds: true }, filter, undefined, terminal.signal);
    const written: Written = { count: 0, complete: false };
    try {
      await (flags.json === true || flags.csv === true
        ? writeAll(terminal, batches, flags, written)
        : writeTable(terminal, batches, written));
    } finally {
      await record.end(written.count, null, written.complete);
    }
  });
  if (terminal.signal.aborted) throw interrupted('interrupted: the list is not whole');
}

/** Number of purchases that were written so far, and whether these are all. */
interface Written {
  count: number;
  complete: boolean;
}

async function writeAll(
  { stdout, stderr, signal }: Terminal,
  batches: AsyncIterable<PurchaseBatch>,
  { json, excel, timeZone }: ListFlags,
  written: Written,
): Promise<void> {
  const isCsv = json !== true;
  const csv = csvWriter(PURCHASE_COLUMNS, { zone: zoneOf(timeZone), excel });
  const lineOf = (row: PurchaseRow): string => (isCsv ? csv.line(purchaseCells(row)) : `${jsonLine(row)}\n`);
  if (isCsv && !(await writeText(stdout, csv.heading))) return;
  for await (const { rows } of batches) {
    if (rows.length > 0 && !(await writeText(stdout, rows.map(lineOf).join('')))) return;
    written.count += rows.length;
  }
  written.complete = !signal.aborted;
  if (isCsv && written.complete) stderr.write(`${written.count} ${written.count === 1 ? 'purchase' : 'purchases'}\n`);
}

async function writeTable(
  { stdout, stderr, signal }: Terminal,
  batches: AsyncIterable<PurchaseBatch>,
  written: Written,
): Promise<void> {
  const found: PurchaseRow[] = [];
  for await (const { rows } of batches) {
    found.push(...rows);
    if (found.length > MOST_LINES) break;
  }
  if (signal.aborted) return;
  if (found.length === 0) await writeLines(stdout, ['no purchase is like this']);
  else await writeLines(stdout, tableOf(found.slice(0, MOST_LINES), stdout.columns));
  if (found.length > MOST_LINES)
    stderr.write(`these are the latest ${MOST_LINES}: give more filters, or --csv, which has all\n`);
  Object.assign(written, { count: Math.min(found.length, MOST_LINES), complete: true });
}

function tableOf(purchases: readonly PurchaseRow[], columns: number | undefined): string[] {
  const isOrdered = purchases.some(({ reference_id }) => reference_id !== null);
  const order = isOrdered ? ['order'] : [];
  const rows = purchases.map((row) => [
    row.at,
    row.transaction_id,
    row.buyer_id,
    row.product_id,
    pounds(row.sale_price),
    row.count,
    row.status,
    row.charge_id ?? '',
    ...(isOrdered ? [row.reference_id ?? ''] : []),
    pounds(row.paid),
    pounds(row.refunded),
  ]);
  return [
    ...tableLines(
      ['time', 'transaction', 'buyer', 'product', 'price', 'gifts', 'status', 'charge', ...order, 'paid', 'given back'],
      rows,
      columns,
    ),
    '',
    ...textLines(
      `${numberOf(purchases)}; times are UTC, money is pounds; next: gift gifts find --transaction TRANSACTION --reason …; gift history TRANSACTION; gift purchases refund TRANSACTION --reason …`,
      columns,
    ),
  ];
}

/** `188 purchases: 187 charged, 1 declined`. */
function numberOf(purchases: readonly PurchaseRow[]): string {
  const statuses = new Map<string, number>();
  for (const { status } of purchases) statuses.set(status, (statuses.get(status) ?? 0) + 1);
  const shares = [...statuses].map(([status, count]) => `${count} ${status}`).join(', ');
  return `${purchases.length} ${purchases.length === 1 ? 'purchase' : 'purchases'}: ${shares}`;
}
