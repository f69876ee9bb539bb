/** `gift import` (docs/import.md#import-file, docs/commands.md). */
import { Command } from 'commander';
import { currentTime } from '../lib/clock.js';
import { type ImportFault, ImportFaultsError } from '../import/faults.js';
import {
  type ImportReport,
  ImportInterruptedError,
  PRUNE_WITHOUT_YES,
  PruneNeedsYesError,
  importCatalogue,
} from '../import/importCatalogue.js';
import type { ImportChange } from '../import/plan.js';
import { repeatedNames } from '../lib/repeatedNames.js';
import { loadConfig } from '../service/config.js';
import { keyedHash } from '../domain/keyedHash.js';
import { commandLineCaller, neededReason, reasonOf } from './exports.js';
import { inputFile, MAX_INPUT_BYTES, nameOf, readInput } from './fileNames.js';
import { openImportLog } from './importLog.js';
import { examples, jsonLine, printable } from './output.js';
import { progressBar } from './progress.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from './terminal.js';

interface ImportFlags {
  readonly prune?: true;
  readonly dryRun?: true;
  readonly yes?: true;
  readonly reason?: string;
  readonly json?: true;
}

export function importCommand(terminal: Terminal): Command {
  return new Command('import')
    .summary('bring in a catalogue and accounts')
    .description(
      'Brings the catalogue and the accounts of a JSON file in. The same file again changes nothing; an interrupted import is finished by repeating it.',
    )
    .argument('<file>', 'the JSON file, or - for standard input', inputFile)
    .option('--prune', 'retire entries that are missing from the arrays in the file')
    .option('--dry-run', 'show what would be done, entry by entry, and do nothing')
    .option('--yes', `prune more than ${PRUNE_WITHOUT_YES} entries`)
    .option('--reason <text>', 'why entries are pruned; kept with what is appended')
    .option('--json', 'one JSON object a line on standard output')
    .addHelpText(
      'after',
      examples(
        'gift import examples/demo.json',
        'gift import catalogue.json --prune --dry-run',
        'gift import catalogue.json --prune --reason "shops closed in May" --yes',
        'curl -s https://example.com/catalogue.json | gift import -',
      ),
    )
    .action(async (file: string, flags: ImportFlags) => runImport(terminal, file, flags));
}

async function runImport(terminal: Terminal, file: string, flags: ImportFlags): Promise<void> {
  const prune = pruneOf(flags);
  const config = loadConfig(terminal.env);
  const { parsed, textFaults } = parse(file, await readText(terminal, file));
  const log = await openImportLog(terminal, config, flags.dryRun === true);
  const progress = progressBar(terminal.stderr, { doing: 'importing', unit: 'entries' });
  try {
    const hash = keyedHash(await log.hashKey());
    const report = await importCatalogue(
      { events: log.events, hash, subjects: log.subjects, erasedUsers: log.erasedUsers, now: currentTime },
      parsed,
      {
        by: commandLineCaller(),
        signal: terminal.signal,
        onProgress: progress,
        prune,
        textFaults,
        dryRun: flags.dryRun,
      },
    );
    progress.clear();
    await writeLines(terminal.stdout, flags.json === true ? reportAsJson(report) : describeReport(report));
    // Beside a service's log that is elsewhere this looks as if all were done.
    if (log.fresh && !report.dryRun)
      terminal.stderr.write(
        `gift: there was no event log in ${config.dataDir}, and this import has made one: if the service's is elsewhere, set DATA_DIR to it\n`,
      );
    for (const id of report.mixedClients)
      terminal.stderr.write(
        `gift: staff and others log in through client ${id}, and its entry does not say whether staff may: give it "staff": false, or a client of its own with "staff": true to staff\n`,
      );
    if (report.unread.length > 0)
      terminal.stderr.write(
        `gift: fields of ${report.unread.join(', ')} were altered in the log; what the file says of them was written anew\n`,
      );
  } catch (error) {
    progress.clear();
    if (error instanceof ImportFaultsError)
      throw await showFaults(terminal, file, error, {
        json: flags.json === true,
        ...(log.fresh ? { newLogIn: config.dataDir } : {}),
      });
    if (error instanceof ImportInterruptedError) throw interrupted(error.message);
    if (error instanceof PruneNeedsYesError)
      throw new CommandFailure(`${error.message}: look at them with --dry-run, then repeat with --yes`);
    throw error;
  } finally {
    await log.close();
  }
}

/** The flags for pruning; a dry run needs no reason. */
function pruneOf({ prune, dryRun, reason, yes }: ImportFlags): { reason: string; yes: boolean } | undefined {
  if (prune === undefined) {
    if (reason !== undefined) throw usageFailure('--reason goes with --prune');
    return undefined;
  }
  return {
    reason: dryRun === undefined ? neededReason(reason, '--prune') : (reasonOf(reason) ?? ''),
    yes: yes === true,
  };
}

async function readText(terminal: Terminal, file: string): Promise<string> {
  const bytes = await readNamed(terminal, file);
  if (bytes === undefined) {
    throw new CommandFailure(
      `${nameOf(file)} is larger than ${MAX_INPUT_BYTES} bytes, which is the most an import may have: split it, leaving each array whole where entries are pruned`,
    );
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw new CommandFailure(`${nameOf(file)} is not UTF-8 text`);
  }
}

/** The bytes of the file; `undefined`: it is too large. */
async function readNamed(terminal: Terminal, file: string): Promise<Buffer | undefined> {
  try {
    return await readInput(terminal, file);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code === undefined || file === '-') throw error;
    throw new CommandFailure(`cannot read ${file}: ${code === 'ENOENT' ? 'there is no such file' : code}`);
  }
}

/** The parser's message quotes the text, which may hold a password: only the position is shown. */
function parse(file: string, text: string): { parsed: unknown; textFaults: readonly ImportFault[] } {
  try {
    return { parsed: JSON.parse(text) as unknown, textFaults: repetitionsIn(text) };
  } catch (error) {
    const position = /at position (\d+)/.exec((error as Error).message)?.[1];
    if (position === undefined) throw new CommandFailure(`${nameOf(file)} is not JSON`);
    throw new CommandFailure(`${nameOf(file)} is not JSON: see ${spotsIn(text)(Number(position))}`);
  }
}

function spotsIn(text: string): (offset: number) => string {
  const lines = [0];
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', end + 1)) lines.push(end + 1);
  return (offset) => {
    let [line, beyond] = [0, lines.length];
    while (beyond - line > 1) {
      const middle = (line + beyond) >>> 1;
      if ((lines[middle] as number) <= offset) line = middle;
      else beyond = middle;
    }
    return `line ${line + 1}, column ${offset - (lines[line] as number) + 1}`;
  };
}

function repetitionsIn(text: string): ImportFault[] {
  const repeated = repeatedNames(text);
  if (repeated.length === 0) return [];
  const spot = spotsIn(text);
  return repeated.map(({ path, at, before }) => ({
    place: path,
    fault: `stands there twice: see ${spot(before)} and ${spot(at)}`,
  }));
}

/** Prints the faults of a file. `newLogIn`: a folder that had no log before, so it may be the wrong one. */
async function showFaults(
  terminal: Terminal,
  file: string,
  { faults, appended }: ImportFaultsError,
  { json, newLogIn }: { readonly json: boolean; readonly newLogIn?: string },
): Promise<CommandFailure> {
  if (json) await writeLines(terminal.stdout, faults.map(jsonLine));
  else
    await writeLines(
      terminal.stderr,
      faults.map(({ place, fault }) => printable(place === '' ? fault : `${place}: ${fault}`)),
    );
  const count = `${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}`;
  const done =
    appended === 0 ? 'nothing was imported' : `another import came in between; ${appended} events were appended before`;
  const elsewhere =
    newLogIn === undefined
      ? ''
      : `; there was no event log in ${newLogIn}: if the service's is elsewhere, set DATA_DIR to it`;
  return new CommandFailure(`${nameOf(file)} has ${count}; ${done}: correct the file and repeat${elsewhere}`);
}

function* reportAsJson(report: ImportReport): Generator<string> {
  for (const change of report.changes) yield jsonLine(change);
  const { dryRun, unchanged, events, position } = report;
  yield jsonLine({
    action: 'done',
    dry_run: dryRun,
    ...countsOf(report.changes),
    unchanged,
    events,
    position,
  });
}

function countsOf(changes: readonly ImportChange[]): { added: number; changed: number; retired: number } {
  const counts = { added: 0, changed: 0, retired: 0 };
  for (const { action } of changes)
    counts[action === 'add' ? 'added' : action === 'change' ? 'changed' : 'retired'] += 1;
  return counts;
}

function* describeReport({ dryRun, changes, unchanged }: ImportReport): Generator<string> {
  if (dryRun) {
    for (const { action, array, id, fields } of changes)
      yield `would ${action} ${array} ${id}${fields === undefined ? '' : `: ${fields.join(', ')}`}`;
  } else {
    for (const array of new Set(changes.map((change) => change.array)))
      yield `${array}: ${inWords(countsOf(changes.filter((change) => change.array === array)))}`;
  }
  const counts = countsOf(changes);
  const done =
    changes.length === 0
      ? dryRun
        ? 'nothing would change'
        : 'nothing changed'
      : `${dryRun ? 'would be ' : ''}${inWords(counts)}`;
  yield `${done}; ${unchanged} unchanged`;
  if (dryRun && counts.retired > PRUNE_WITHOUT_YES)
    yield `more than ${PRUNE_WITHOUT_YES} entries would be pruned: this wants --yes`;
}

function inWords(counts: Readonly<Record<string, number>>): string {
  return Object.entries(counts)
    .filter(([, count]) => count > 0)
    .map(([word, count]) => `${count} ${word}`)
    .join(', ');
}
