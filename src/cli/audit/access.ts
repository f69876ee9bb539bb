import { Command } from 'commander';
import { csvLine } from '../../ops/exports/csv.js';
import { EVENT_COLUMNS, eventRow } from '../../ops/history/eventRows.js';
import { type EventView, eventView } from '../../ops/history/eventView.js';
import { currentTime } from '../../lib/clock.js';
import { accessStream } from '../../domain/access.js';
import { withLog } from '../engines.js';
import { cliAccess, outputOptions } from '../exports.js';
import { examples, jsonLine, tableLines } from '../output.js';
import { type Terminal, usageFailure, writeLines } from '../terminal.js';
import { isDay } from '../times.js';

interface AccessFlags {
  readonly day?: string;
  readonly json?: true;
  readonly csv?: true;
}

export function auditAccessCommand(terminal: Terminal): Command {
  const command = new Command('access')
    .summary('show who saw what on a day')
    .description(
      'Shows the records that exports and calls of the operations API left on a day (UTC), in order; this one not among them.',
    )
    .option('--day <day>', 'the day, such as 2026-05-04 (default: today)');
  return outputOptions(command, { csv: true })
    .addHelpText('after', examples('gift audit access --day 2026-05-04'))
    .action(async (flags: AccessFlags) => runAccess(terminal, flags));
}

async function runAccess(terminal: Terminal, flags: AccessFlags): Promise<void> {
  const day = flags.day ?? currentTime().slice(0, 10);
  if (!isDay(day))
    throw usageFailure(`--day ${JSON.stringify(day.slice(0, 40))} is not a day: give one such as 2026-05-04`);
  await withLog(terminal, async ({ events }) => {
    const views = (await events.read(accessStream(day))).map((event) => eventView(event, { personal: false }));
    await cliAccess(events).shown('gift audit access', { day }, { personal: false, reason: null }, views.length);
    await writeLines(
      terminal.stdout,
      flags.json === true
        ? views.map(jsonLine)
        : flags.csv === true
          ? [csvLine(EVENT_COLUMNS), ...views.map((view) => csvLine(eventRow(view)))]
          : tableOf(views),
    );
  });
}

function tableOf(views: readonly EventView[]): string[] {
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
  );
}
