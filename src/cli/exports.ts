/** Options and access records of subcommands that show records (docs/support.md#access-records). */
import { type Command, Option } from 'commander';
import { randomUUID } from '../lib/world.js';
import type { Sight } from '../ops/history/eventView.js';
import { currentTime } from '../lib/clock.js';
import { MASK } from '../lib/mask.js';
import { type Asker, type StartedOperation, accessRecorder } from '../commands/recordAccess.js';
import type { AccessRequest } from '../domain/access.js';
import { MAX_REASON } from '../domain/reason.js';
import type { EventStore, Caller } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { type Terminal, usageFailure, writeLines } from './terminal.js';
import { hostname, userInfo } from 'node:os';
import type { CommandContext } from '../commands/transact.js';

export interface SightFlags {
  readonly personal?: true;
  readonly reason?: string;
}

export function sightOptions(command: Command): Command {
  return command
    .option('--personal', 'show personal fields, too; wants --reason')
    .option('--reason <text>', 'why; kept with the record of who saw what');
}

/** @throws CommandFailure for personal fields without a reason */
export function sightOf({ personal, reason }: SightFlags): Sight & { readonly reason: string | null } {
  const text = reasonOf(reason);
  if (personal === true && text === null) throw usageFailure('--personal wants --reason "<why>"');
  return { personal: personal === true, reason: text };
}

/** Says what a masked field is, where one was shown. @returns whether it did */
export async function explainMask({ stderr }: Terminal, shown: readonly object[]): Promise<boolean> {
  const isMasked = JSON.stringify(shown).includes(`"${MASK}"`);
  if (isMasked)
    await writeLines(stderr, [`${MASK} is a personal field: --personal --reason "…" shows it, and is recorded`]);
  return isMasked;
}

/** The trimmed reason; null: none was given. @throws CommandFailure for an empty reason, or one that is too long */
export function reasonOf(reason: string | undefined): string | null {
  if (reason === undefined) return null;
  const text = reason.trim();
  if (text === '') throw usageFailure('--reason must not be empty');
  if (text.length > MAX_REASON) throw usageFailure(`--reason has at most ${MAX_REASON} characters`);
  return text;
}

/** @throws CommandFailure without a reason; `what` is the command */
export function neededReason(reason: string | undefined, what: string): string {
  const text = reasonOf(reason);
  if (text === null) throw usageFailure(`${what} wants --reason "<why>"`);
  return text;
}

export const CSV_RULE =
  'A text that a spreadsheet would take for a number, a date or a formula is led by an apostrophe, and so is every text that starts with one: a program takes one leading apostrophe away. Amounts name their unit.';
export const LOCAL_DAY_RULE = 'The column local_day has the day of the time beside it, in --time-zone.';

export function outputOptions(command: Command, { csv = false } = {}): Command {
  command.addOption(
    new Option('--json', 'one JSON object a line on standard output, and nothing else').conflicts('csv'),
  );
  if (!csv) return command;
  return command
    .option('--csv', 'CSV with a heading on standard output, and nothing else')
    .addOption(
      new Option('--excel', 'the same with a byte order mark, which Excel needs')
        .conflicts('json')
        .implies({ csv: true }),
    );
}

export interface CsvFlags {
  readonly csv?: true;
  readonly excel?: true;
}

type Asked = Readonly<Record<string, unknown>>;
type Viewing = Pick<AccessRequest, 'personal' | 'reason'>;

/** Access records of the command line's user. `what`: the command; `asked`: its argument and flags. */
interface CliAccess {
  start(what: string, asked: Asked, viewing: Viewing): Promise<StartedOperation>;
  shown(what: string, asked: Asked, viewing: Viewing, count: number): Promise<void>;
}

export function cliAccess(events: EventStore): CliAccess {
  const recorder = accessRecorder(events, currentTime);
  const asker: Asker = { by: commandLineCaller(), requestId: `cli-${randomUUID()}` };
  return {
    start: async (what, asked, viewing) => recorder.start(asker, accessRequest(what, asked, viewing)),
    shown: async (what, asked, viewing, count) => recorder.shown(asker, accessRequest(what, asked, viewing), count),
  };
}

/**
 * Records that the whole log is handed out by the command `what`. A log that can't take the record (sealed, full disk)
 * is handed out all the same, with a warning.
 * @returns `undefined` where the log took no record
 */
export async function recordTaking(
  terminal: Terminal,
  events: EventStore,
  what: string,
  asked: Asked,
  reason: string | null,
): Promise<StartedOperation | undefined> {
  return recordIfPossible(terminal, what.slice('gift '.length), async () =>
    cliAccess(events).start(what, asked, { personal: true, reason }),
  );
}

/**
 * Appends the record of a `work` that is done also where the log can't take the record: that is a warning.
 * @returns `undefined` where the log took no record
 */
export async function recordIfPossible<T>(
  { stderr }: Pick<Terminal, 'stderr'>,
  work: string,
  record: () => Promise<T>,
): Promise<T | undefined> {
  try {
    return await record();
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    await writeLines(stderr, [
      `gift: the log takes no record of this ${work} (${error.message}); it is made all the same`,
    ]);
    return undefined;
  }
}

/** The request for the access record, without flags for the output's format. */
function accessRequest(what: string, asked: Asked, { personal, reason }: Viewing): AccessRequest {
  const { personal: _p, reason: _r, json: _j, csv: _c, excel: _e, ...rest } = asked;
  return { what, asked: rest, personal, reason };
}

/** The caller named in events of the command line: `cli:<system user>@<host>` (docs/support.md#acting-person). */
export function commandLineCaller(): Caller {
  return { user: `cli:${systemUser()}@${hostname()}` };
}

/** The system user's name; its number where it has none, as in containers. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

/** Called once the log is open: a sandbox's clock is joined there. */
export function commandLineContext(): CommandContext {
  const commandId = randomUUID();
  return { commandId, correlationId: commandId, by: commandLineCaller(), now: currentTime() };
}
