/** `gift copy` (docs/deployment.md#engines-of-your-own). */
import { resolve } from 'node:path';
import { Command } from 'commander';
import { openEmbeddedEventStore } from '../adapters/embedded/eventStore/eventStore.js';
import { resources } from '../lib/async/resources.js';
import { CopyInterruptedError, type CopyProgress, CopyRefusedError, copyLog } from '../ops/backup/copyLog.js';
import { outwardState } from '../ops/outward/outwardWork.js';
import type { EventStore } from '../ports/eventStore.js';
import { hasEventLog } from './dataFolder.js';
import { recordTaking } from './exports.js';
import { notStandard } from './fileNames.js';
import { jsonLine } from './output.js';
import { heldLines } from './outward.js';
import { progressBars } from './progress.js';
import { CommandFailure, EXIT, type Terminal, usageFailure, writeLines } from './terminal.js';

const DOING: Readonly<Record<CopyProgress['step'], string>> = {
  compare: 'comparing',
  copy: 'copying',
  verify: 'reading back',
};

interface CopyFlags {
  readonly from: string;
  readonly to: string;
  readonly seal: boolean;
  readonly json?: true;
}

const logName = notStandard('A log is a data folder or an EventStoreDB: name one');

export function copyCommand(terminal: Terminal): Command {
  return new Command('copy')
    .summary('copy the whole event log to another engine, and seal the old one')
    .description(
      `Copies every event, in order, into a log of its own id, reads it back, compares both by count and hash, and then seals the source:
nothing can be appended to it any more. The first head that is signed over the copy names the last one of the source. An interrupted copy is finished by repeating it. A log is a data folder or an EventStoreDB, whose address may be in an environment variable: every user
of the machine can read a command line, and an address may hold a password.`,
    )
    .requiredOption(
      '--from <log>',
      'the source: a data folder, esdb://…, or env:NAME for the address in an environment variable',
      logName,
    )
    .requiredOption(
      '--to <log>',
      'the target, empty or with an earlier copy of the source: named as the source is',
      logName,
    )
    .option('--no-seal', 'leave the source open: for a drill')
    .option('--json', 'one JSON object on standard output')
    .addHelpText(
      'after',
      `
The service may go on serving while the log is copied; stop it before the end, or it answers writes with 503 from the seal on.
The keys are no part of the log: give the service on the new engine the same HASH_KEY, MASTER_KEY, SEAL_KEY and TOKEN_KEY (a data folder keeps them in hash.key, master.key, seal.key and token.key) and the same key store (keys.db, or gift keys backup and restore).

Examples:
  $ gift copy --from ./data --to "esdb://127.0.0.1:2113?tls=false"
  $ gift copy --from env:EVENTSTORE_URL --to ./drill --no-seal`,
    )
    .action(async (flags: CopyFlags) => runCopy(terminal, flags));
}

async function runCopy(terminal: Terminal, { from, to, seal, json }: CopyFlags): Promise<void> {
  const [source, target] = [
    locationOf(addressOf(from, '--from', terminal), '--from'),
    locationOf(addressOf(to, '--to', terminal), '--to'),
  ];
  if (source.dir !== undefined && !hasEventLog(source.dir))
    throw new CommandFailure(`--from: there is no event log in ${from}`);
  const open = resources();
  const bars = progressBars(terminal.stderr);
  const onProgress = ({ step, events, share }: CopyProgress): void =>
    bars.show(DOING[step], events, share === undefined ? undefined : { share });
  try {
    const opened = async (location: LogLocation): Promise<EventStore> => open.add(await location.open());
    const sourceLog = await opened(source);
    const targetLog = await opened(target);
    // The access record is copied, too: it shows the copy's origin.
    if (!(await sourceLog.sealed()))
      await recordTaking(terminal, sourceLog, 'gift copy', { from: sourceLog.logId, to: targetLog.logId }, null);
    const { events, copied, hash, sealed } = await copyLog(
      { source: sourceLog, target: targetLog },
      { seal, signal: terminal.signal, onProgress },
    );
    bars.clear();
    const { held } = await outwardState(targetLog);
    const words = [
      `${events} events in both logs, ${copied} copied now; hash ${hash}`,
      `log ${targetLog.logId} (${targetLog.engine}) is a copy of ${sourceLog.logId} (${sourceLog.engine}), which is ${sealed ? 'sealed' : 'not sealed'}`,
      ...heldLines(held, 'with the settings of the copy, '),
    ];
    const report = {
      action: 'done',
      events,
      copied,
      hash,
      sealed,
      from: sourceLog.logId,
      to: targetLog.logId,
      waits: held !== undefined,
    };
    await open.close();
    await writeLines(terminal.stdout, json === true ? [jsonLine(report)] : words);
  } catch (error) {
    bars.clear();
    await open.close().catch(() => undefined);
    if (error instanceof CopyRefusedError) throw new CommandFailure(error.message);
    if (error instanceof CopyInterruptedError)
      throw new CommandFailure(error.message, error.cause === undefined ? EXIT.interrupted : EXIT.failed);
    throw error;
  }
}

interface LogLocation {
  /** Data folder of an embedded log. */
  readonly dir?: string;
  readonly open: () => Promise<EventStore>;
}

/** Resolves an address `env:NAME` from the environment. @throws CommandFailure where the variable is not set */
function addressOf(text: string, option: string, { env }: Terminal): string {
  const name = /^env:(.*)$/.exec(text)?.[1]?.trim();
  if (name === undefined) return text;
  const address = env[name]?.trim() ?? '';
  if (address === '')
    throw usageFailure(
      `${option} names the environment variable ${JSON.stringify(name.slice(0, 40))}, which is not set`,
    );
  return address;
}

function locationOf(text: string, option: string): LogLocation {
  if (/^esdb(\+discover)?:\/\//.test(text))
    return {
      open: async () => (await import('../adapters/eventstoredb/eventStore.js')).openEventStoreDb({ url: text }),
    };
  // Only the scheme is shown: the rest may hold a password. An address of EventStoreDB that lacks a slash is no folder.
  const scheme = /^(?:[\w+.-]+:\/\/|esdb[\w+]*:\/?)/i.exec(text)?.[0];
  if (scheme !== undefined || text.trim() === '') {
    throw usageFailure(
      `${option} must be a data folder, or an address that starts with esdb:// or esdb+discover://${scheme === undefined ? '' : `, not with ${scheme}`}`,
    );
  }
  const dir = resolve(text);
  return { dir, open: async () => openEmbeddedEventStore({ dir }) };
}
