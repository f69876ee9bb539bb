/** `gift restore` (docs/deployment.md#engines-of-your-own). */
import { existsSync, rmdirSync } from 'node:fs';
import { resolve } from 'node:path';
import { Command } from 'commander';
import { openEmbeddedEventStore } from '../adapters/embedded/eventStore/eventStore.js';
import { putEventLog, prepareEventLog } from '../adapters/embedded/eventStore/log.js';
import { currentTime } from '../lib/clock.js';
import { type Backup, checkBackup } from '../ops/backup/backupFile.js';
import { BackupDamagedError } from '../ops/backup/backupLines.js';
import { outwardState } from '../ops/outward/outwardWork.js';
import type { EventStore } from '../ports/eventStore.js';
import { restoreLog } from '../ops/backup/restoreLog.js';
import { CopyInterruptedError, CopyRefusedError } from '../ops/backup/copyLog.js';
import { type Config, loadConfig } from '../service/config.js';
import { makeDataDir } from '../service/dataDir.js';
import { refuseForeignFiles } from '../service/engines.js';
import { keyedHash } from '../domain/keyedHash.js';
import { findHashKey, HASH_KEY_FILE, findSealKeys } from '../service/keys.js';
import { commandLineCaller, neededReason, outputOptions } from './exports.js';
import { namesIn } from './dataFolder.js';
import { eraseAgain, IF_BOTH_ARE_OLDER, NONE_ERASED, openLines, refuseFailed } from './people/eraseAgain.js';
import { inputFiles, notStandard } from './fileNames.js';
import { jsonLine } from './output.js';
import { heldLines } from './outward.js';
import { progressBars } from './progress.js';
import { CommandFailure, interrupted, type Terminal, writeLines } from './terminal.js';
import { verifyLog } from '../ops/evidence/index.js';
import { retainedHeads, witnessesOf } from './audit/heads.js';

interface RestoreFlags extends HeadFlags {
  readonly reason?: string;
  readonly withoutKey?: true;
  readonly json?: true;
}

interface Restored {
  readonly backup: Backup;
  readonly logId: string;
  /** Why outward work waits, if it does. */
  readonly held: string | undefined;
  /** Number of logins lost with the keys. */
  readonly users: number;
}

export function restoreCommand(terminal: Terminal): Command {
  return outputOptions(
    new Command('restore')
      .summary('make a new event log from a backup')
      .description(
        `Checks FILE against its hashes, makes a log of its own id from it in DATA_DIR, which must hold none yet, reads it back and puts it in place.
Whatever goes wrong, nothing is left behind. Read models are built anew when the service starts; all users log in again.`,
      )
      .argument('<file>', 'a backup made by gift backup', notStandard('A backup is read twice: name a file'))
      .option('--reason <text>', 'why; kept in the new log')
      .option(
        '--without-key',
        'the HASH_KEY of the log, its MASTER_KEY or its key store is lost: restore all the same, and start with none of them; all logins, phone numbers and messages are lost then',
      )
      .option(
        '--checkpoint <file>',
        'a signed head that was kept elsewhere, or - for standard input: a backup that ends before it is refused; may be repeated',
        inputFiles,
        [],
      )
      .option(
        '--behind',
        'restore also where events are missing that such a head, or the last word of a witness of SEAL_WITNESSES, covers',
      ),
  )
    .addHelpText(
      'after',
      `
Put the keys back first: hash.key, master.key, seal.key and token.key into DATA_DIR, or HASH_KEY, MASTER_KEY, SEAL_KEY and TOKEN_KEY; and the key store (gift keys restore). Stop the service that ran on the old log for good: what it still sells is not in the new one.

Examples:
  $ DATA_DIR=/srv/gift gift restore /backups/gift-2026-11-21.log --reason "disk of the old machine died"
  $ DATA_DIR=./drill gift restore /backups/gift-2026-11-21.log --reason "restore drill"`,
    )
    .action(async (file: string, flags: RestoreFlags) => runRestore(terminal, file, flags));
}

async function runRestore(terminal: Terminal, file: string, flags: RestoreFlags): Promise<void> {
  const reason = neededReason(flags.reason, 'restore');
  const path = resolve(file);
  const config = loadConfig(terminal.env);
  if (config.eventStoreUrl !== undefined)
    throw new CommandFailure(
      'EVENTSTORE_URL is set: an EventStoreDB is restored by its own means, see "Backup and restore" in docs/deployment.md',
    );
  refuseUnlessFresh(config.dataDir);
  // The key store in the folder, restored before, must be one that this program can open.
  refuseForeignFiles(config);
  if (!existsSync(path)) throw new CommandFailure(`there is no file ${file}`);

  const { signal, stderr } = terminal;
  const bars = progressBars(stderr);
  let restored: Restored;
  try {
    const backup = await checkBackup(path, {
      signal,
      onProgress: (events) => bars.show('checking the backup', events, undefined),
    });
    if (flags.withoutKey !== true) refuseUnlessKeyFits(config, backup);
    restored = await restoreInto(config.dataDir, async (target) => {
      const words = { compare: 'restoring', copy: 'restoring', verify: 'reading back' };
      const now = currentTime();
      await restoreLog(target, {
        path,
        backup,
        by: commandLineCaller(),
        reason,
        ...(flags.withoutKey === true ? { withoutKey: true } : {}),
        judge: (restored) => refuseOlderBackup(terminal, config, restored, backup.log_id, flags),
        now,
        signal,
        onProgress: ({ step, events }) => bars.show(words[step], events, backup.events),
      });
      const { held } = await outwardState(target);
      return { backup, logId: target.logId, held, users: flags.withoutKey === true ? await usersOf(target) : 0 };
    });
  } catch (error) {
    throw failureOf(error, file, signal);
  } finally {
    bars.clear();
  }
  await report(terminal, config, flags, restored);
}

/** Repeats the erasures of the restored log, and reports on it also where that fails. */
async function report(
  terminal: Terminal,
  config: Config,
  flags: RestoreFlags,
  { backup, logId, held, users }: Restored,
): Promise<void> {
  const repeated = await eraseAgain(terminal).catch((error: Error) => error);
  const erased = repeated instanceof Error ? NONE_ERASED : repeated;
  const { events, position, hash, log_id, started_at } = backup;
  const done = {
    action: 'done',
    events,
    position,
    hash,
    from: log_id,
    to: logId,
    backed_up_at: started_at,
    data_dir: config.dataDir,
    waits: held !== undefined,
    ...(flags.withoutKey === true ? { lost_logins: users } : {}),
    erased_again: erased.again,
    not_erased_again: erased.open,
  };
  const lines = [
    `${events} events, up to position ${position ?? 'none'} of log ${log_id}, are in ${config.dataDir} as log ${logId}; hash ${hash}`,
    ...(flags.withoutKey === true ? [lostWithoutKey(users)] : []),
    ...(erased.again === 0 ? [] : [`${erased.again} persons whose erasure was undone were erased again`]),
    ...openLines(erased),
    `what was done after ${started_at} is not in it: compare with what the payment provider knows`,
    IF_BOTH_ARE_OLDER,
    config.mongodbUrl === undefined
      ? 'start the service: read models are built anew'
      : 'name an empty database in MONGODB_URL and start the service: read models are built anew',
    ...heldLines(held),
  ];
  await writeLines(terminal.stdout, flags.json === true ? [jsonLine(done)] : lines);
  if (repeated instanceof Error)
    throw new CommandFailure(
      `the log is restored, but its erasures were not repeated (${repeated.message}): the service repeats them before it serves`,
    );
  refuseFailed(erased);
}

async function usersOf(events: Pick<EventStore, 'readAll'>): Promise<number> {
  let users = 0;
  for await (const batch of events.readAll(undefined, { types: ['UserAdded'] })) users += batch.events.length;
  return users;
}

const lostWithoutKey = (users: number): string =>
  `WITHOUT ITS KEYS: all ${users} logins are lost for good, and so is what usernames, phone numbers and messages said; no gift is found by its receiver's number. Import users anew`;

function refuseUnlessFresh(dataDir: string): void {
  const there = namesIn(dataDir);
  const found = there.find((name) => /^(events|read)\.db(-wal|-shm)?$/.test(name));
  if (found !== undefined)
    throw new CommandFailure(
      `${dataDir} holds data already (${found}): nothing is restored over it; set DATA_DIR to a folder without, or move it away`,
    );
  const leftover = there.find((name) => name.startsWith('restoring-'));
  if (leftover !== undefined)
    throw new CommandFailure(
      `another restore into ${dataDir} is running, or was killed: if none runs, remove ${resolve(dataDir, leftover)} and repeat`,
    );
}

function refuseUnlessKeyFits(config: Config, { log_id, hash_key_check: expected }: Backup): void {
  if (expected === null) return;
  const key = findHashKey(config);
  const remedy = `put the installation's ${HASH_KEY_FILE} into ${config.dataDir}, or set HASH_KEY; if it is lost for good: --without-key, which loses all logins, numbers and messages`;
  if (key === undefined) throw new CommandFailure(`the HASH_KEY of this log is needed: ${remedy}`);
  if (keyedHash(key)('backup', log_id) !== expected)
    throw new CommandFailure(`this is not the HASH_KEY that the log was made with: ${remedy}`);
}

/** Fills a log alongside its final location and moves it there at the end: a failure leaves the folder as it was. */
async function restoreInto<T>(
  dataDir: string,
  fill: (target: Awaited<ReturnType<typeof openEmbeddedEventStore>>) => Promise<T>,
): Promise<T> {
  const made = makeDataDir(dataDir);
  const prepared = prepareEventLog(dataDir);
  let done = false;
  try {
    const target = await openEmbeddedEventStore({ dir: prepared.dir });
    let filled: T;
    try {
      filled = await fill(target);
    } finally {
      await target.close();
    }
    putEventLog(prepared.dir, dataDir);
    done = true;
    return filled;
  } finally {
    prepared.remove();
    if (made && !done) rmdirSync(dataDir);
  }
}

function failureOf(error: unknown, file: string, signal: AbortSignal): unknown {
  const nothing = 'nothing was restored';
  if (signal.aborted) return interrupted(`interrupted; ${nothing}`);
  if (error instanceof BackupDamagedError)
    return new CommandFailure(`${file} ${error.message}; ${nothing}: take another backup`);
  if (error instanceof CopyRefusedError || error instanceof CopyInterruptedError)
    return new CommandFailure(`the new log could not be written (${error.message.split(';')[0]}); ${nothing}`);
  const { code } = error as NodeJS.ErrnoException;
  if (code === 'EISDIR') return new CommandFailure(`${file} is a folder, not a backup`);
  if (code === 'EEXIST') return new CommandFailure(`somebody else has made an event log there meanwhile; ${nothing}`);
  if (code === 'EACCES' || code === 'EPERM' || code === 'EROFS')
    return new CommandFailure(`no permission (${(error as Error).message}); ${nothing}`);
  return error;
}

interface HeadFlags {
  readonly checkpoint: readonly string[];
  readonly behind?: true;
}

/**
 * Compares a backup with the heads that were signed over its log, before anything of it is used. The tiles of the lost
 * log are not needed: a head tells how many events it covered.
 * @param restored the log made from the backup of the log `logId`
 * @throws CommandFailure where its events are not those that were signed, or, without `behind`, where some are missing
 */
async function refuseOlderBackup(
  terminal: Terminal,
  config: Config,
  restored: EventStore,
  logId: string,
  { checkpoint, behind }: HeadFlags,
): Promise<void> {
  const { fault } = await verifyLog(
    { stored: restored, keys: findSealKeys(config) ?? [] },
    {
      signal: terminal.signal,
      retained: await retainedHeads(terminal, checkpoint),
      witnesses: { ...witnessesOf(config, terminal), logId },
    },
  );
  if (fault === undefined) return;
  if (fault.what === 'cut off') {
    if (behind === true) return;
    throw new CommandFailure(
      `the backup is behind a signed head: ${fault.message}. Nothing was restored: take a later backup; --behind restores this one all the same`,
    );
  }
  if (fault.what === 'unknown signer')
    throw new CommandFailure(
      `the backup can't be held against what was signed: ${fault.message}. Nothing was restored: set SEAL_KEY to OLD,NEW, with the key of that time; docs/evidence.md says what to do where it is lost`,
    );
  throw new CommandFailure(
    `the backup is not what was signed: ${fault.message}. Nothing was restored: take another backup`,
  );
}
