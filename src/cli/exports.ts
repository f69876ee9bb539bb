/**
 * What subcommands that show records share: personal fields, reasons, formats, and access records
 * (docs/decisions.md#access-records).
 */
import { randomUUID } from 'node:crypto';
import { type Command, Option } from 'commander';
import type { Sight } from '../ops/history/eventView.js';
import { currentTime } from '../lib/clock.js';
import { type AccessRecorder, type Asker, accessRecorder } from '../commands/recordAccess.js';
import type { AccessRequest } from '../domain/access.js';
import { MAX_REASON } from '../domain/reason.js';
import type { EventStore } from '../ports/eventStore.js';
import { UnavailableError } from '../ports/unavailable.js';
import { commandLineCaller } from './caller.js';
import { CommandFailure, EXIT, type Terminal, writeLines } from './terminal.js';

export interface SightFlags {
  readonly personal?: true;
  readonly reason?: string;
}

export function sightOptions(command: Command): Command {
  return command
    .option('--personal', 'show personal fields, too; wants --reason')
    .option('--reason <text>', 'why; kept with the record of who saw what');
}

/** @throws CommandFailure where personal fields are wanted without a reason */
export function sightOf({ personal, reason }: SightFlags): Sight & { readonly reason: string | null } {
  const text = reasonOf(reason);
  if (personal === true && text === null) throw new CommandFailure('--personal wants --reason "<why>"', EXIT.usage);
  return { personal: personal === true, reason: text };
}

/**
 * Trimmed; null without one.
 * @throws CommandFailure for one that is empty or too long
 */
export function reasonOf(reason: string | undefined): string | null {
  if (reason === undefined) return null;
  const text = reason.trim();
  if (text === '') throw new CommandFailure('--reason must not be empty', EXIT.usage);
  if (text.length > MAX_REASON) throw new CommandFailure(`--reason has at most ${MAX_REASON} characters`, EXIT.usage);
  return text;
}

/**
 * A required reason; `what`: the command.
 * @throws CommandFailure
 */
export function neededReason(reason: string | undefined, what: string): string {
  const text = reasonOf(reason);
  if (text === null) throw new CommandFailure(`${what} wants --reason "<why>"`, EXIT.usage);
  return text;
}

/** For the help of every command with CSV. */
export const CSV_RULE = `A text that a spreadsheet would take for a number, a date or a formula is led by an apostrophe,
and so is one that begins with one: a program takes one leading apostrophe away. Amounts name their unit.`;

/** Adds `--json`, and `--csv` where the command has rows. */
export function outputOptions(command: Command, { csv }: { csv: boolean }): Command {
  command.addOption(
    new Option('--json', 'one JSON object a line on standard output, and nothing else').conflicts('csv'),
  );
  return csv ? command.option('--csv', 'CSV with a heading on standard output, and nothing else') : command;
}

/** Leaves records in the name of the command line's user. */
export interface CliAccess {
  readonly recorder: AccessRecorder;
  readonly asker: Asker;
}

export function cliAccess(events: EventStore): CliAccess {
  return {
    recorder: accessRecorder(events, currentTime),
    asker: { by: commandLineCaller(), requestId: `cli-${randomUUID()}` },
  };
}

/**
 * Records that the whole log is handed out. A log that can't take the record (sealed, full disk) is handed out all the
 * same, and standard error says so.
 * @param what the command as it is called
 */
export async function recordTaking(
  terminal: Terminal,
  events: EventStore,
  what: string,
  asked: Readonly<Record<string, unknown>>,
  reason: string | null,
): Promise<void> {
  const { recorder, asker } = cliAccess(events);
  try {
    await recorder.start(asker, accessRequest(what, asked, { personal: true, reason }));
  } catch (error) {
    if (!(error instanceof UnavailableError)) throw error;
    await writeLines(terminal.stderr, [
      `gift: the log takes no record of this ${what.slice('gift '.length)} (${error.message}); it is made all the same`,
    ]);
  }
}

/** What was asked: the command, its argument and flags, without those about its format. */
export function accessRequest(
  what: string,
  asked: Readonly<Record<string, unknown>>,
  { personal, reason }: { readonly personal: boolean; readonly reason: string | null },
): AccessRequest {
  const { personal: _p, reason: _r, json: _j, csv: _c, ...rest } = asked;
  return { what, asked: rest, personal, reason };
}
