/** `gift keys`: the key store, without which personal data can't be read. */
import { Command } from 'commander';
import { currentTime } from '../lib/clock.js';
import { backupKeys, checkKeysBackup, restoreKeys, rewrapKeys } from '../ops/people/index.js';
import { BackupDamagedError } from '../ops/backup/backupLines.js';
import { loadConfig } from '../service/config.js';
import { openPersonal } from '../service/personal.js';
import { backupFailureOf, refuseUnlessNew } from './backupFile.js';
import { type OpenedLog, refuseOtherKeys, withLog } from './engines.js';
import { eraseAgain, IF_BOTH_ARE_OLDER, openLines, refuseFailed } from './people/eraseAgain.js';
import { recordTaking } from './exports.js';
import { notStandard } from './fileNames.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from './terminal.js';

export function keysCommand(terminal: Terminal): Command {
  return new Command('keys')
    .summary('back up, restore and rewrap the key store')
    .description(
      'The key store holds what opens personal data: data keys, phone numbers and usernames, wrapped under MASTER_KEY.',
    )
    .addCommand(
      new Command('backup')
        .summary('write the key store into a file')
        .description(
          'Writes every row and erasure into a new file (mode 0600), beside a running service. Keep it for 30 days at most, apart from MASTER_KEY and from backups of the log: what was erased is in it until then.',
        )
        .argument(
          '<file>',
          'the file, which must not be there yet',
          notStandard('It holds secrets and is for its owner only: name a file'),
        )
        .addHelpText('after', '\nExample:\n  $ gift keys backup /backups/keys-2026-05-04')
        .action(async (file: string) => runBackup(terminal, file)),
    )
    .addCommand(
      new Command('restore')
        .summary('add the rows of a backup to the key store')
        .description(
          'Adds what is not there; what stands in the key store stays as it is. Rows of persons who were erased since are left out.',
        )
        .argument(
          '<file>',
          'a file that `gift keys backup` has written',
          notStandard('A backup is read twice: name a file'),
        )
        .addHelpText(
          'after',
          `\nBefore the service starts: ${IF_BOTH_ARE_OLDER}.\n\nExample:\n  $ gift keys restore /backups/keys-2026-05-04`,
        )
        .action(async (file: string) => runRestore(terminal, file)),
    )
    .addCommand(
      new Command('rewrap')
        .summary('wrap all secrets under the first MASTER_KEY')
        .description(
          'First every process gets both keys (MASTER_KEY=OLD,NEW), then both the other way round (NEW,OLD). Repeat this command until it wraps none anew; then NEW alone will do.',
        )
        .addHelpText('after', '\nExample:\n  $ MASTER_KEY="$NEW,$OLD" gift keys rewrap')
        .action(async () => runRewrap(terminal)),
    )
    .addHelpText('after', '\nExample:\n  $ gift keys backup /backups/keys-2026-05-04');
}

async function runBackup(terminal: Terminal, path: string): Promise<void> {
  refuseUnlessNew(path);
  await withLog(terminal, async (log) => {
    // A backup of another installation's key store, or of an empty one, would be of no use.
    await refuseOtherKeys(log);
    await recordTaking(terminal, log.events, 'gift keys backup', { file: path }, null);
    const { signal } = terminal;
    const rows = await backupKeys(log.keys, path, { takenAt: currentTime(), signal }).catch((error: unknown) => {
      throw backupFailureOf(error, path, signal);
    });
    await writeLines(terminal.stdout, [`${rows} rows of the key store are in ${path}`]);
  });
}

async function runRestore(terminal: Terminal, path: string): Promise<void> {
  const { signal } = terminal;
  const backup = await checkKeysBackup(path, signal).catch((error: NodeJS.ErrnoException) => {
    if (signal.aborted) throw interrupted('interrupted; nothing was added');
    if (error instanceof BackupDamagedError) throw new CommandFailure(`${path} ${error.message}`);
    throw new CommandFailure(`${path} can't be read (${error.code ?? error.message})`);
  });
  const { keys } = openPersonal(loadConfig(terminal.env));
  try {
    const { rows, erased: leftOut, others } = await restoreKeys(keys, { path, backup }, signal);
    await writeLines(terminal.stdout, [
      `${rows} rows of ${path} are in the key store`,
      ...(leftOut === 0 ? [] : [`${leftOut} rows of erased persons were left out`]),
    ]);
    const erased = await eraseAgain(terminal);
    await writeLines(terminal.stdout, [
      ...(erased.again === 0
        ? []
        : [`${erased.again} erased persons, whose rows were in the backup, were erased again`]),
      ...openLines(erased),
    ]);
    if (others > 0)
      throw new CommandFailure(
        `${others} rows were left out: the key store has other rows for the same numbers and usernames, so personal data under those left out stays unreadable; restore into an empty key store before the service adds to it`,
      );
    refuseFailed(erased);
  } catch (error) {
    if (error instanceof BackupDamagedError) throw new CommandFailure(`${path} ${error.message}`);
    throw signal.aborted ? interrupted(REPEAT) : error;
  } finally {
    await keys.close();
  }
}

async function runRewrap(terminal: Terminal): Promise<void> {
  await withLog(terminal, async (log) => {
    // Of another key store, or an empty one, "0 of 0 rows" would say that the old key is needed no longer.
    await refuseOtherKeys(log);
    await rewrap(terminal, log);
  });
}

async function rewrap(terminal: Terminal, { keys, master }: Pick<OpenedLog, 'keys' | 'master'>): Promise<void> {
  try {
    const { rows, rewrapped, altered } = await rewrapKeys(keys, master, terminal.signal);
    await writeLines(terminal.stdout, [`${rewrapped} of ${rows} rows were wrapped anew under the first MASTER_KEY`]);
    await writeLines(
      terminal.stderr,
      altered.map((id) => `row ${id} was altered: no key opens it, and it stays as it is`),
    );
  } catch (error) {
    throw terminal.signal.aborted ? interrupted(REPEAT) : error;
  }
}

const REPEAT = 'interrupted; repeat the command to finish it';
