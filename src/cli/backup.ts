/** `gift backup FILE`: the embedded event log as one file (docs/commands.md). */
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { EngineError } from '../lib/engineError.js';
import { currentTime } from '../lib/clock.js';
import { backupLog } from '../ops/backup/backupLog.js';
import { type Config, loadConfig } from '../service/config.js';
import { keyedHash } from '../domain/keyedHash.js';
import { type CheckedLog, refuseUnlessKeysFit } from '../service/keysCheck.js';
import { findHashKey, HASH_KEY_FILE, MASTER_KEY_FILE, SEAL_KEY_FILE, TOKEN_KEY_FILE } from '../service/keys.js';
import { backupFailureOf, refuseUnlessNew } from './backupFile.js';
import { withLog } from './engines.js';
import { outputOptions, reasonOf, recordIfPossible, recordTaking } from './exports.js';
import { notStandard } from './fileNames.js';
import { examples, jsonLine } from './output.js';
import { progressBars } from './progress.js';
import { UnavailableError } from '../ports/unavailable.js';
import { CommandFailure, type Terminal, writeLines } from './terminal.js';

interface BackupFlags {
  readonly reason?: string;
  readonly json?: true;
}

/** An item to be stored alongside a backup, which does not include it. */
interface Kept {
  readonly what: string;
  readonly where: string;
  readonly why: string;
}

export function backupCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('backup')
      .summary('write the whole event log into a file, while the service goes on')
      .description(
        `Writes every event up to this moment into FILE, reads it back, and says its hash, its position and what else must be kept.
The file holds all secrets of the log, and its personal data encrypted: keep it as you keep the data folder. An EventStoreDB is backed up by its own means, see docs/deployment.md.`,
      )
      .argument(
        '<file>',
        'where the backup goes; nothing may stand there',
        notStandard('A backup is read back from where it went: name a file'),
      )
      .option('--reason <text>', 'why; kept with the record that the backup was made'),
  )
    .addHelpText(
      'after',
      examples('gift backup /backups/gift-2026-11-21.log', 'gift backup "/backups/gift-$(date +%F).log" --json'),
    )
    .action(async (file: string, flags: BackupFlags) => runBackup(terminal, file, flags));
}

async function runBackup(terminal: Terminal, file: string, flags: BackupFlags): Promise<void> {
  const reason = reasonOf(flags.reason);
  const path = resolve(file);
  const { config, set } = settingsOf(terminal.env);
  if (config.eventStoreUrl !== undefined)
    throw new CommandFailure(
      'EVENTSTORE_URL is set: the log is in EventStoreDB and is backed up by its own means, see "Backup and restore" in docs/deployment.md',
    );
  refuseUnlessNew(file);

  await withLog(
    terminal,
    async ({ events, ...log }) => {
      const record = await recordTaking(terminal, events, 'gift backup', { file: path }, reason);
      const hashKey = await fittingKey(terminal, { events, ...log }, findHashKey(config));
      const { signal } = terminal;
      const bars = progressBars(terminal.stderr);
      try {
        const {
          events: count,
          position,
          hash,
          bytes,
          log_id,
          started_at,
        } = await backupLog(events, {
          path,
          hashKeyCheck: hashKey === undefined ? null : keyedHash(hashKey)('backup', events.logId),
          now: currentTime(),
          signal,
          // A position of the embedded log is the number of its event.
          onProgress: (step, done, end) =>
            bars.show(
              step === 'write' ? 'backing up' : 'reading back',
              done,
              end === undefined ? undefined : Number(end),
            ),
        });
        bars.clear();
        // A backup without this end counts as one that failed (docs/support.md#what-is-wrong).
        if (record !== undefined)
          await recordIfPossible(terminal, 'backup', async () => record.end(count, position, true));
        const keep = keptBeside(config, set, hashKey !== undefined);
        if (flags.json === true)
          return await writeLines(terminal.stdout, [
            jsonLine({ action: 'done', file: path, bytes, events: count, position, hash, log_id, started_at, keep }),
          ]);
        await writeLines(terminal.stdout, [
          `${count} events of log ${log_id}, up to position ${position ?? 'none'}, are in ${file} (${bytes} bytes)`,
          `hash ${hash}`,
          'keep beside it, since it holds neither:',
          ...keep.map(({ what, where, why }) => `  ${what} (${where}): ${why}`),
        ]);
      } catch (error) {
        bars.clear();
        throw backupFailureOf(error, file, signal);
      }
    },
    { asStored: true },
  );
}

/**
 * The HASH_KEY, unless it is known not to be the log's own: a restore compares it. An unfitting key only causes a
 * warning, since the backup does not need it.
 */
async function fittingKey(terminal: Terminal, log: CheckedLog, key: Buffer | undefined): Promise<Buffer | undefined> {
  try {
    await refuseUnlessKeysFit(log, () => key);
    return key;
  } catch (error) {
    // The key store has a backup of its own; here it only helps to recognise the key.
    if (error instanceof UnavailableError || (error instanceof EngineError && error.setting !== 'HASH_KEY')) return key;
    if (!(error instanceof EngineError)) throw error;
    await writeLines(terminal.stderr, [
      `gift: ${error.message}; the backup is made all the same, and can't tell a restore which key is right`,
    ]);
    return undefined;
  }
}

/** The configuration. `set`: the names of the environment variables that are set. */
function settingsOf(env: Terminal['env']): { readonly config: Config; readonly set: readonly string[] } {
  const requested = new Set<string>();
  const watched = new Proxy(env, {
    get(target, name) {
      const value = Reflect.get(target, name) as unknown;
      if (typeof name === 'string' && typeof value === 'string' && value.trim() !== '') requested.add(name);
      return value;
    },
  });
  return { config: loadConfig(watched), set: [...requested].toSorted() };
}

function keptBeside(
  { dataDir, hashKey, masterKeys, sealKeys, tokenKeys }: Config,
  set: readonly string[],
  keyFits: boolean,
): Kept[] {
  const whereOf = (variable: string, given: boolean, file: string, fits = true): string => {
    const path = join(dataDir, file);
    if (!fits && (given || existsSync(path)))
      return `what is ${given ? `set in ${variable}` : `in ${path}`} is not the log's own: find that before you need it`;
    if (given) return `the variable ${variable}`;
    return existsSync(path) ? path : `neither set here nor in ${path}: find it before you need it`;
  };
  const others = set.filter((name) => !['HASH_KEY', 'MASTER_KEY', 'SEAL_KEY', 'TOKEN_KEY'].includes(name));
  return [
    {
      what: 'HASH_KEY',
      where: whereOf('HASH_KEY', hashKey !== undefined, HASH_KEY_FILE, keyFits),
      why: 'without it usernames and phone numbers are lost',
    },
    {
      what: 'MASTER_KEY',
      where: whereOf('MASTER_KEY', masterKeys !== undefined, MASTER_KEY_FILE),
      why: 'without it all personal data is lost',
    },
    {
      what: 'the key store',
      where: 'gift keys backup',
      why: 'without it all personal data is lost',
    },
    {
      what: 'SEAL_KEY',
      where: whereOf('SEAL_KEY', sealKeys !== undefined, SEAL_KEY_FILE),
      why: 'without it auditors must be given another key that verifies',
    },
    {
      what: 'TOKEN_KEY',
      where: whereOf('TOKEN_KEY', tokenKeys !== undefined, TOKEN_KEY_FILE),
      why: 'without it all users log in again',
    },
    {
      what: 'settings',
      where: others.length === 0 ? 'none is set here' : others.join(', '),
      why: 'the service is started with the same',
    },
  ];
}
