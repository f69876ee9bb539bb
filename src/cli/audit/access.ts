import { Command } from 'commander';
import { csvWriter } from '../../ops/exports/csv.js';
import { EVENT_COLUMNS, eventRow } from '../../ops/history/eventRows.js';
import { type EventView, eventView } from '../../ops/history/eventView.js';
import { currentTime } from '../../lib/clock.js';
import { isGiftId, isShortcode } from '../../domain/giftIds.js';
import { type AccessFilter, type AccessPage, readAccess, unknownIn } from '../../ops/history/accessRecords.js';
import { DEFAULT_ZONE } from '../../ops/ranges/times.js';
import { openPeople } from '../../ops/people/index.js';
import { type OpenedLog, withLog } from '../engines.js';
import { giftNamed } from '../giftNamed.js';
import { type CsvFlags, cliAccess, outputOptions } from '../exports.js';
import { examples, jsonLine, tableLines } from '../output.js';
import { type Terminal, usageFailure, writeLines, writeText } from '../terminal.js';
import { zoneOf } from '../ranges.js';
import { startOfDay } from '../../lib/writtenTime.js';

interface AccessFlags extends AccessFilter, CsvFlags {
  readonly day?: string;
  readonly from?: string;
  readonly to?: string;
  readonly timeZone: string;
  readonly json?: true;
}

export function auditAccessCommand(terminal: Terminal): Command {
  const command = new Command('access')
    .summary('show who saw what')
    .description(
      'Shows the records that exports and calls of the operations API left on a day, or from one day to another (UTC), in order; this one not among them.',
    )
    .option('--day <day>', 'the day, such as 2026-05-04 (default: today)')
    .option('--from <day>', 'from this day on')
    .option('--to <day>', 'up to this day (default: today); wants --from')
    .option('--person <person>', 'only calls that were about this user, or phone:…, or found them')
    .option('--gift <id>', 'only calls that were about this gift, by its id or shortcode')
    .option('--who <user>', 'only calls by this user, or cli:…')
    .option('--time-zone <zone>', 'the zone of days in CSV', DEFAULT_ZONE);
  return outputOptions(command, { csv: true })
    .addHelpText(
      'after',
      examples('gift audit access --day 2026-05-04', 'gift audit access --person u42 --from 2026-01-01 --csv'),
    )
    .action(async (flags: AccessFlags) => runAccess(terminal, flags));
}

async function runAccess(terminal: Terminal, flags: AccessFlags): Promise<void> {
  const { from, to } = daysOf(flags);
  const { person, who, json, csv: isCsv, excel, timeZone, ...rest } = flags;
  const zone = zoneOf(timeZone);
  if (rest.gift !== undefined && !isGiftId(rest.gift) && !isShortcode(rest.gift))
    throw usageFailure("--gift: give a gift's id or shortcode");
  await withLog(terminal, async (opened) => {
    const { events } = opened;
    const gift = rest.gift === undefined ? undefined : await giftNamed(opened, rest.gift);
    const requested = { ...(flags.from === undefined ? { day: from } : { from, to }), person, gift, who };
    const read = (): AsyncGenerator<AccessPage> =>
      readAccess(events, { day: from, revision: -1 }, to, { person, gift, who });
    // The records are counted before they are shown: records made from here on are not among them.
    let left = 0;
    for await (const { records } of read()) {
      terminal.signal.throwIfAborted();
      left += records.length;
    }
    if (left === 0) await refuseUnknown(opened, { person, gift, who });
    await cliAccess(events).shown('gift audit access', requested, { personal: false, reason: null }, left);
    const csv = csvWriter(EVENT_COLUMNS, { zone, excel });
    if (isCsv === true) await writeText(terminal.stdout, csv.heading);
    let heading = isCsv !== true && json !== true;
    for await (const { records } of read()) {
      const views = records.slice(0, left).map((event) => eventView(event, { personal: false }));
      left -= views.length;
      if (json === true) await writeLines(terminal.stdout, views.map(jsonLine));
      else if (isCsv === true) await writeText(terminal.stdout, views.map((view) => csv.line(eventRow(view))).join(''));
      else if (views.length > 0 || (heading && left === 0)) {
        const { columns } = terminal.stdout;
        const lines = tableOf(views, columns);
        // On a terminal each page is a table of its own: one may fit where another has a line for each cell.
        const more = columns === undefined ? lines.slice(2) : ['', ...lines];
        await writeLines(terminal.stdout, heading ? lines : more);
        heading = false;
      }
      if (left === 0 && !heading) break;
    }
  });
}

/** @throws CommandFailure */
async function refuseUnknown(opened: OpenedLog, filter: AccessFilter): Promise<void> {
  const unknown = await unknownIn(opened.events, filter, openPeople(opened).isKnown);
  if (unknown === undefined) return;
  const { field, fault } = unknown;
  const text = (filter[field] ?? '').slice(0, 100);
  throw usageFailure(`--${field}: ${field === 'gift' ? text : JSON.stringify(text)} ${fault}`);
}

/** @throws CommandFailure */
function daysOf({ day, from, to }: AccessFlags): { readonly from: string; readonly to: string } {
  if (day !== undefined && (from ?? to) !== undefined) throw usageFailure('give --day, or --from and --to');
  if (to !== undefined && from === undefined) throw usageFailure('--to wants --from');
  for (const [option, text] of Object.entries({ day, from, to }))
    if (text !== undefined && startOfDay(text) === undefined)
      throw usageFailure(`--${option} ${JSON.stringify(text.slice(0, 40))} is not a day: give one such as 2026-05-04`);
  const today = currentTime().slice(0, 10);
  const first = from ?? day ?? today;
  const last = to ?? (from === undefined ? first : today);
  if (last < first) throw usageFailure('--from is later than --to');
  return { from: first, to: last };
}

function tableOf(views: readonly EventView[], columns: number | undefined): string[] {
  return tableLines(
    ['when', 'who', 'client', 'type', 'what', 'asked', 'personal', 'reason', 'records'],
    views.map(({ at, by, type, data }) => {
      const { what, asked, personal, reason, count } = data as {
        what?: string;
        asked?: object;
        personal?: boolean;
        reason?: string | null;
        count?: number;
      };
      return [
        at,
        by.user,
        by.client,
        type,
        what,
        asked === undefined ? '' : JSON.stringify(asked),
        personal === true ? 'yes' : '',
        reason,
        count,
      ];
    }),
    columns,
  );
}
