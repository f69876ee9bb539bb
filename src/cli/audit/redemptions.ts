/** `gift audit redemptions`: in constant memory, resumable by position. */
import { Command } from 'commander';
import {
  REDEMPTION_FILTER_NAMES,
  type RedemptionRecord,
  readRedemptions,
  redemptionCsv,
  redemptionTopic,
} from '../../ops/redemptions/redemptionHistory.js';
import type { LogRange } from '../../ops/ranges/range.js';
import type { Position } from '../../ports/eventStore.js';
import { shareOf } from '../../runtime/coordination/index.js';
import { withLog } from '../engines.js';
import { CSV_RULE, type CsvFlags, cliAccess, LOCAL_DAY_RULE, outputOptions, reasonOf } from '../exports.js';
import { type Goal, progressBar } from '../progress.js';
import { type RangeFlags, describeRange, rangeOf, rangeOptions, zoneOf } from '../ranges.js';
import { interrupted, type Terminal, writeText } from '../terminal.js';
import { requestedFilter, filterOptions } from './filters.js';

interface RedemptionFlags extends RangeFlags, CsvFlags {
  readonly after?: string;
  readonly reason?: string;
  readonly json?: true;
}

export function auditRedemptionsCommand(terminal: Terminal): Command {
  const command = new Command('redemptions')
    .summary('export who redeemed what, where and when')
    .description(
      'Writes redemptions and their reversals as they stand in the log, in its order: CSV with a heading, or one JSON object a line. Values are pence, times UTC.',
    )
    .option('--after <position>', 'go on after this position, where an earlier export ended')
    .option('--reason <text>', 'why; kept with the record of who saw what');
  return outputOptions(rangeOptions(filterOptions(command, REDEMPTION_FILTER_NAMES)), { csv: true })
    .addHelpText(
      'after',
      `
In CSV the columns from location_name on are for people: names are those of the day. ${CSV_RULE}
${LOCAL_DAY_RULE}

An export that was broken off is gone on with by --after and the position in its last whole line; one that is cut off in the middle is dropped.

Examples:
  $ gift audit redemptions --from 2026-05-01 --to 2026-05-31 --merchant m1 > may.csv
  $ gift audit redemptions --json --after 0000000000184213 >> all.ndjson`,
    )
    .action(async (flags: RedemptionFlags) => runExport(terminal, flags));
}

async function runExport(terminal: Terminal, flags: RedemptionFlags): Promise<void> {
  const reason = reasonOf(flags.reason);
  await withLog(terminal, async (opened) => {
    const { events } = opened;
    const { after: requested } = flags;
    const filter = await requestedFilter(opened, flags, REDEMPTION_FILTER_NAMES);
    const range = await rangeOf(events, flags, requested);
    terminal.stderr.write(`${describeRange(range)}\n`);
    const viewing = { personal: false, reason };
    const record = await cliAccess(events).start(
      'gift audit redemptions',
      { ...flags, giftId: undefined, ...filter, ...redemptionTopic(filter) },
      viewing,
    );
    const progress = progressBar(terminal.stderr, { doing: 'exporting', unit: 'records' });
    const csv = redemptionCsv(events, { zone: zoneOf(flags.timeZone), excel: flags.excel });
    const linesOf = async (records: readonly RedemptionRecord[]): Promise<string> =>
      flags.json === true ? records.map((record) => `${JSON.stringify(record)}\n`).join('') : csv.lines(records);
    const toTerminal = (terminal.stdout as { readonly isTTY?: boolean }).isTTY === true;
    let count = 0;
    let position: Position | null = range.after;
    let complete = false;
    let reading = true;
    try {
      // A resumed export has its heading already.
      if (flags.json !== true && requested === undefined) reading = await writeText(terminal.stdout, csv.heading);
      if (reading) {
        for await (const batch of readRedemptions(events, range, filter, terminal.signal)) {
          reading = batch.records.length === 0 || (await writeText(terminal.stdout, await linesOf(batch.records)));
          if (!reading) break;
          ({ position } = batch);
          count += batch.records.length;
          if (!toTerminal) progress(count, goalOf(position, range));
        }
      }
      complete = reading && !terminal.signal.aborted;
    } finally {
      progress.clear();
      await record.end(count, position, complete);
    }
    const done = `${count} records up to log position ${position ?? 'none'}`;
    if (terminal.signal.aborted)
      throw interrupted(`interrupted after ${done}; go on with --after ${position ?? '(from the beginning)'}`);
    if (complete) terminal.stderr.write(`${done}\n`);
  });
}

function goalOf(position: Position, { after, through }: LogRange): Goal {
  const from = shareOf(after ?? undefined, through ?? undefined);
  const share = shareOf(position, through ?? undefined);
  return share === undefined || from === undefined || from >= 1 ? undefined : { share: (share - from) / (1 - from) };
}
