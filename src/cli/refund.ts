import { Command } from 'commander';
import { refundView, whyNotRefunded } from '../ops/refunds/refundView.js';
import { listRefunds, refundGifts, type RefundStatus } from '../commands/refundGifts.js';
import { isGiftId, isShortcode } from '../domain/giftIds.js';
import { pounds } from '../domain/money.js';
import { commandLineContext, neededReason } from './exports.js';
import { withLog, withStores } from './engines.js';
import { refuseWhileHeld } from './outward.js';
import { giftsNamed } from './giftNamed.js';
import { type ManyFlags, manyOptions, rowsOfFile, runMany } from './many.js';
import { examples, jsonLine, tableLines } from './output.js';
import { throwDescribed } from './refusals.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from './terminal.js';

const WAIT_S = 30;

interface RefundFlags extends ManyFlags {
  readonly gift?: readonly string[];
  readonly voided?: true;
  readonly reason?: string;
  readonly wait: string;
}

export function refundCommand(terminal: Terminal): Command {
  const command = new Command('refund')
    .summary('cancel gifts of a purchase and give their price back')
    .description(
      `Cancels gifts that have been neither redeemed nor vouchered, then gives exactly their share back to where it came from. A running service does it:
once asked for it is done, whatever happens, and never twice. Expired gifts are refunded like others.`,
    )
    .argument('[transaction]', "the transaction's id")
    .option(
      '--gift <id...>',
      'only these gifts (id or shortcode; may be repeated); default: all that belong to no refund yet and can be cancelled',
    )
    .option('--voided', 'refund gifts with a voucher too: their codes have been made worthless')
    .option('--reason <text>', 'why; kept with what is appended')
    .option('--wait <seconds>', 'how long to wait for its end', String(WAIT_S))
    .option('--json', 'one JSON object on standard output, with --file one a line');
  return manyOptions(command)
    .addHelpText(
      'after',
      `
Examples:
  $ gift purchases refund 6ec0bd7f11c043da975e2a8ad9ebae0b --reason "bought twice by mistake"
  $ gift purchases refund --file wrong.csv --dry-run --reason "sold at a wrong price"
  $ gift purchases refund 6ec0bd7f11c043da975e2a8ad9ebae0b --gift 5f2c9d6a1b7e4c80d3a1 --voided --reason "code withdrawn by the brand"

Exit codes: 0 refunded, or still under way after the wait; 1 refused, by the provider too, or nothing to refund.`,
    )
    .action(async (transaction: string | undefined, flags: RefundFlags) =>
      flags.file === undefined
        ? runRefund(terminal, transaction, flags)
        : refundMany(terminal, transaction, flags, flags.file),
    );
}

export function refundsCommand(terminal: Terminal): Command {
  return new Command('refunds')
    .summary('list the refunds of a purchase')
    .description('Lists the refunds of a purchase, in order of time.')
    .argument('<transaction>', "the transaction's id")
    .option('--json', 'one JSON object a line on standard output')
    .addHelpText('after', examples('gift purchases refunds 6ec0bd7f11c043da975e2a8ad9ebae0b'))
    .action(async (transaction: string, { json }: { readonly json?: true }) => {
      const refunds = await withLog(terminal, ({ events }) => listRefunds(events, transaction)).catch(throwDescribed);
      const rows = refunds.map(({ id, status, amount, giftIds, provider, ref, code }) => [
        id,
        status,
        pounds(amount),
        giftIds.length,
        provider ?? '',
        ref ?? code ?? '',
      ]);
      const lines =
        json === true
          ? refunds.map((one) => jsonLine(refundView(transaction, one)))
          : tableLines(['refund', 'status', 'amount', 'gifts', 'provider', 'reference'], rows, terminal.stdout.columns);
      await writeLines(terminal.stdout, lines);
    });
}

async function runRefund(terminal: Terminal, transactionId: string | undefined, flags: RefundFlags): Promise<void> {
  if (transactionId === undefined) throw usageFailure('name a transaction, or a file with --file');
  if (flags.dryRun === true) throw usageFailure('--dry-run is for many: give --file');
  const { gift, voided, json } = flags;
  const { reason, ms } = checkedRefund(flags);
  for (const identifier of gift ?? [])
    if (!isGiftId(identifier) && !isShortcode(identifier))
      throw usageFailure(`--gift must be a gift's id or shortcode, not ${JSON.stringify(identifier.slice(0, 64))}`);
  const { refund } = await withLog(terminal, async (opened) => {
    await refuseWhileHeld(opened.events);
    const order = {
      transactionId,
      voided: voided === true,
      reason,
      ...(gift === undefined ? {} : { giftIds: await giftsNamed(opened, gift) }),
    };
    return refundGifts(opened.events, commandLineContext(), order, { ms, signal: terminal.signal });
  }).catch(throwDescribed);
  await writeLines(
    terminal.stdout,
    json === true ? [jsonLine(refundView(transactionId, refund))] : inWords(transactionId, refund),
  );
  const why = whyNotRefunded(refund);
  if (why !== undefined) throw new CommandFailure(why);
  if (terminal.signal.aborted) throw interrupted('interrupted: the refund goes on');
}

async function refundMany(
  terminal: Terminal,
  transactionId: string | undefined,
  flags: RefundFlags,
  file: string,
): Promise<void> {
  if (transactionId !== undefined || flags.gift !== undefined)
    throw usageFailure('--file names whole purchases: give no transaction and no --gift beside it');
  const { reason, ms } = checkedRefund(flags);
  const rows = await rowsOfFile(terminal, file, 'transaction_id');
  await withStores(terminal, async (opened) => {
    if (flags.dryRun !== true) await refuseWhileHeld(opened.events);
    const items = rows.map(({ transaction_id: id = '' }) => ({ id }));
    const request = { action: { name: 'refund', voided: flags.voided === true }, reason } as const;
    await runMany(terminal, opened, items, request, flags, ms);
  }).catch(throwDescribed);
}

/** @throws CommandFailure without a reason, or with a wait that is no number */
function checkedRefund({ reason, wait }: RefundFlags): { readonly reason: string; readonly ms: number } {
  const text = neededReason(reason, 'refund');
  if (!/^\d{1,5}$/.test(wait))
    throw usageFailure(`--wait must be a whole number of seconds, not ${JSON.stringify(wait)}`);
  return { reason: text, ms: Number(wait) * 1_000 };
}

const WORDS: Readonly<Record<string, string>> = {
  redeemed: 'redeemed',
  code_out: 'with a voucher (see --voided)',
  disputed: 'with a disputed payment',
  cancelled: 'cancelled before',
};

function inWords(transactionId: string, { id, status, amount, giftIds, kept, provider, ref }: RefundStatus): string[] {
  const gifts = (count: number): string => `${count} ${count === 1 ? 'gift' : 'gifts'}`;
  const left = Object.entries(kept).map(([why, ids]) => `left as they are: ${gifts(ids.length)} ${WORDS[why] ?? why}`);
  switch (status) {
    case 'refunded':
      return [
        `refund ${id} of purchase ${transactionId}: ${gifts(giftIds.length)} cancelled, £${pounds(amount)} given back by ${provider} (${ref})`,
        ...left,
      ];
    case 'refused':
      return [`refund ${id}: ${gifts(giftIds.length)} cancelled, £${pounds(amount)} not given back`, ...left];
    case 'nothing':
      return [`refund ${id}: nothing`, ...left];
    default:
      return [
        `refund ${id}: under way for ${gifts(giftIds.length)}; a running service finishes it (gift purchases refunds shows how it stands)`,
        ...left,
      ];
  }
}
