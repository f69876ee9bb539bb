/** `gift keys`: the key store, without which personal data can't be read. */
import { open, readFile, rename, rm } from 'node:fs/promises';
import { Command } from 'commander';
import { currentTime } from '../lib/clock.js';
import { backupKeys, KeysBackupDamagedError, readKeysBackup, restoreKeys } from '../ops/keys/keysBackup.js';
import { rewrapKeys } from '../ops/keys/rewrapKeys.js';
import { loadConfig } from '../service/config.js';
import { openPersonal } from '../service/personal.js';
import { withLog } from './engines.js';
import { CommandFailure, EXIT, type Terminal, writeLines } from './terminal.js';

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
          'Writes every row into a new file (mode 0600), beside a running service. Keep it for 30 days at most, apart from MASTER_KEY and from backups of the log: what was erased is in it until then.',
        )
        .argument('<file>', 'the file, which must not be there yet')
        .addHelpText('after', '\nExample:\n  $ gift keys backup /backups/keys-2026-05-04')
        .action(async (file: string) => runBackup(terminal, file)),
    )
    .addCommand(
      new Command('restore')
        .summary('add the rows of a backup to the key store')
        .description('Adds what is not there; rows that stand in the key store stay as they are.')
        .argument('<file>', 'a file that `gift keys backup` has written')
        .addHelpText('after', '\nExample:\n  $ gift keys restore /backups/keys-2026-05-04')
        .action(async (file: string) => runRestore(terminal, file)),
    )
    .addCommand(
      new Command('rewrap')
        .summary('wrap all secrets under the first MASTER_KEY')
        .description(
          'MASTER_KEY lists the new key, then the old one. After this command, and a restart of every process with the new key alone, the old one is needed no more.',
        )
        .addHelpText('after', '\nExample:\n  $ MASTER_KEY="$NEW,$OLD" gift keys rewrap')
        .action(async () => runRewrap(terminal)),
    )
    .addHelpText('after', '\nExample:\n  $ gift keys backup /backups/keys-2026-05-04');
}

async function runBackup(terminal: Terminal, path: string): Promise<void> {
  const part = `${path}.part`;
  await withLog(terminal, async ({ keys }) => {
    const file = await open(part, 'wx', 0o600).catch(throwAboutFile(part));
    try {
      const rows = await backupKeys(keys, file, { takenAt: currentTime(), signal: terminal.signal });
      await (await open(path, 'wx', 0o600).catch(throwAboutFile(path))).close();
      await rename(part, path);
      await writeLines(terminal.stdout, [`${rows} rows of the key store are in ${path}`]);
    } catch (error) {
      throw terminal.signal.aborted ? interrupted() : error;
    } finally {
      await file.close();
      await rm(part, { force: true });
    }
  });
}

async function runRestore(terminal: Terminal, path: string): Promise<void> {
  const text = await readFile(path, 'utf8').catch(throwAboutFile(path));
  const { keys } = openPersonal(loadConfig(terminal.env));
  try {
    const rows = readKeysBackup(text);
    await restoreKeys(keys, rows, terminal.signal);
    await writeLines(terminal.stdout, [`${rows.length} rows of ${path} are in the key store`]);
  } catch (error) {
    if (error instanceof KeysBackupDamagedError) throw new CommandFailure(`${path}: ${error.message}`);
    throw terminal.signal.aborted ? interrupted() : error;
  } finally {
    await keys.close();
  }
}

async function runRewrap(terminal: Terminal): Promise<void> {
  const { keys, master } = openPersonal(loadConfig(terminal.env));
  try {
    const { rows, rewrapped } = await rewrapKeys(keys, master, terminal.signal);
    await writeLines(terminal.stdout, [`${rewrapped} of ${rows} rows were wrapped anew under the first MASTER_KEY`]);
  } catch (error) {
    throw terminal.signal.aborted ? interrupted() : error;
  } finally {
    await keys.close();
  }
}

const interrupted = (): CommandFailure =>
  new CommandFailure('interrupted; repeat the command to finish it', EXIT.interrupted);

const throwAboutFile =
  (path: string) =>
  (error: unknown): never => {
    const { code, message } = error as NodeJS.ErrnoException;
    const why =
      code === 'EEXIST' ? 'is there already: name another file' : code === 'ENOENT' ? 'is not there' : `: ${message}`;
    throw new CommandFailure(`${path} ${why}`);
  };
