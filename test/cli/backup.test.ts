import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  appendFileSync,
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Writable } from 'node:stream';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { canonicalText } from '../../src/ops/backup/logHash.js';
import { keyedHash } from '../../src/domain/keyedHash.js';
import { loadKeys } from '../../src/service/keys.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import { gift, saidBy } from '../support/service/cli.js';
import { event, eventsOf } from '../support/engines/eventStoreEvents.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { GIFT, giftOnFullDisk } from '../support/service/programs.js';

interface Context {
  dir: string;
  data: string;
  file: string;
  fresh: string;
}

const test = suite<Context>('cli/backup');
const RESTORE = (file: string): string[] => ['restore', file, '--reason', 'a drill'];

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-backup-'));
  context.data = join(context.dir, 'data');
  context.file = join(context.dir, 'gift.log');
  context.fresh = join(context.dir, 'fresh');
});

test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

/** A log of some streams, with keys. */
async function fill(dir: string, streams: number): Promise<void> {
  loadKeys({ dataDir: dir });
  await withLogIn(dir, async (store) => {
    await store.appendInOrder!(
      Array.from({ length: streams }, (_, n) => ({
        stream: `gift-${n}`,
        events: [event('GiftIssued', { n, b: 1, a: ['é', null, 1.5] }), event('GiftRedeemed', { n })],
        expected: 'none' as const,
      })),
    );
  });
}

/** A folder with nothing but the keys of another. */
function freshWithKeys({ data, fresh }: Context): void {
  mkdirSync(fresh);
  for (const key of ['hash.key', 'master.key', 'token.key']) cpSync(join(data, key), join(fresh, key));
}

const logOf = async (dir: string): Promise<RecordedEvent[]> =>
  withLogIn(dir, async (store) => eventsOf(store.readAll(undefined)));
const textsOf = async (dir: string): Promise<string[]> => (await logOf(dir)).map(canonicalText);

test('restores a backup with the same events in order, a new log id and records of both', async (context) => {
  const { data, file, fresh } = context;
  await fill(data, 300);
  const made = await gift(data, ['backup', file, '--reason', 'Friday']);
  assert.equal([made.code, made.err], [0, '']);
  const lines = made.out.split('\n');
  assert.match(
    lines[0]!,
    /^601 events of log [0-9a-f-]{36}, up to position 0{13}601, are in .*gift\.log \(\d+ bytes\)$/,
  );
  const [, hash = ''] = /^hash ([0-9a-f]{64})$/.exec(lines[1]!) ?? [];
  assert.is(
    execFileSync('sh', ['-c', `sed 1d "${file}" | head -n -2 | sha256sum`], { encoding: 'utf8' }).slice(0, 64),
    hash,
  );
  assert.match(
    made.out,
    new RegExp(
      `HASH_KEY \\(${data}/hash\\.key\\).*\n.*MASTER_KEY \\(${data}/master\\.key\\).*\n.*the key store \\(gift keys backup\\).*\n.*SEAL_KEY \\(${data}/seal\\.key\\).*\n.*TOKEN_KEY \\(${data}/token\\.key\\).*\n.*settings \\(DATA_DIR\\)`,
    ),
  );
  assert.is(statSync(file).mode & 0o777, 0o600);
  const texts = (await textsOf(data)).slice(0, -1);
  const [recorded, ended] = (await logOf(data)).slice(-2);
  assert.equal(
    [recorded!.type, (recorded!.data as { reason: string }).reason, (recorded!.data as { personal: boolean }).personal],
    ['OperationStarted', 'Friday', true],
  );
  const { complete, count } = ended!.data as { complete: boolean; count: number };
  assert.equal([ended!.type, complete, count], ['OperationEnded', true, 601]);

  freshWithKeys(context);
  const restored = await gift(fresh, RESTORE(file));
  assert.equal([restored.code, restored.err], [0, '']);
  assert.match(
    restored.out,
    new RegExp(`^601 events, up to position 0{13}601 of log \\S+, are in ${fresh} as log \\S+; hash ${hash}\n`),
  );
  const events = await logOf(fresh);
  assert.equal(events.slice(0, -1).map(canonicalText), texts);
  const last = events.at(-1)!;
  const ids = await Promise.all([data, fresh].map((dir) => withLogIn(dir, async (store) => store.logId)));
  assert.is.not(ids[0], ids[1]);
  assert.equal(
    [last.type, last.stream, last.metadata.by.user?.startsWith('cli:')],
    ['LogRestored', 'log-restored', true],
  );
  const { backed_up_at, ...told } = last.data as Record<string, unknown>;
  assert.equal(told, {
    from_log_id: ids[0],
    to_log_id: ids[1],
    events: 601,
    position: '0000000000000601',
    hash,
    reason: 'a drill',
  });
  assert.match(String(backed_up_at), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  assert.equal(readdirSync(fresh).toSorted(), ['events.db', 'hash.key', 'master.key', 'token.key']);
  assert.is(statSync(join(fresh, 'events.db')).mode & 0o777, 0o600);
});

test('backs up and restores an empty log and a restored one with --json; unseals a sealed one', async (context) => {
  const { data, dir, file, fresh } = context;
  loadKeys({ dataDir: data });
  await withLogIn(data, async (store) => store.seal());
  const made = await gift({ DATA_DIR: data, CHARGE_WAIT_MS: '100', TOKEN_KEY: 'k'.repeat(40) }, [
    'backup',
    file,
    '--json',
  ]);
  assert.match(made.err, /takes no record of this backup \(.*sealed.*\); it is made all the same\n$/);
  const { bytes, log_id, started_at, keep, ...rest } = JSON.parse(made.out) as Record<string, unknown>;
  assert.equal(rest, {
    action: 'done',
    file,
    events: 0,
    position: null,
    hash: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
  });
  assert.is(bytes, statSync(file).size);
  assert.ok(String(log_id).length === 36 && String(started_at).endsWith('Z'));
  assert.equal(
    (keep as { what: string; where: string }[]).map(({ what, where }) => [what, where]),
    [
      ['HASH_KEY', join(data, 'hash.key')],
      ['MASTER_KEY', join(data, 'master.key')],
      ['the key store', 'gift keys backup'],
      ['SEAL_KEY', join(data, 'seal.key')],
      ['TOKEN_KEY', 'the variable TOKEN_KEY'],
      ['settings', 'CHARGE_WAIT_MS, DATA_DIR'],
    ],
  );
  assert.not(made.out.includes('kkkk'));
  freshWithKeys(context);
  const first = JSON.parse((await gift(fresh, [...RESTORE(file), '--json'])).out) as Record<string, unknown>;
  assert.equal([first['action'], first['events'], first['from'], first['data_dir']], ['done', 0, log_id, fresh]);
  const second = join(dir, 'second.log');
  assert.is((await gift(fresh, ['backup', second])).code, 0);
  const third = join(dir, 'third');
  mkdirSync(third);
  cpSync(join(fresh, 'hash.key'), join(third, 'hash.key'));
  assert.is((await gift(third, RESTORE(second))).code, 0);
  assert.equal(
    (await logOf(third)).map(({ type }) => type),
    ['LogRestored', 'OperationStarted', 'LogRestored'],
  );
});

test('a name that is given away in the meantime is not overwritten, and nothing left behind', async ({ dir, data }) => {
  await fill(data, 3);
  // It is not there when it is looked for, and is when it is to be given.
  const link = join(dir, 'link');
  symlinkSync(join(dir, 'gone'), link);
  assert.equal(saidBy(await gift(data, ['backup', link])), {
    code: 1,
    out: '',
    err: `gift: ${link} is there already: name another file\n`,
  });
  assert.equal(readdirSync(dir).toSorted(), ['data', 'link']);
});

test('is not hindered by what a killed backup has left, whatever its process id', async ({ dir, data, file }) => {
  await fill(data, 3);
  const left = `${basename(file)}.${process.pid}.part`;
  writeFileSync(join(dir, left), 'half of one');
  assert.is((await gift(data, ['backup', file])).code, 0);
  assert.equal(readdirSync(dir).toSorted(), ['data', basename(file), left].toSorted());
});

test('bad input for a backup: a clear line, nothing left behind', async ({ dir, data, file }) => {
  assert.equal(saidBy(await gift(data, ['backup', file])), {
    code: 1,
    out: '',
    err: `gift: there is no event log in ${data}: set DATA_DIR to the service's data folder, or EVENTSTORE_URL\n`,
  });
  await fill(data, 3);
  assert.is((await gift(data, ['backup'])).code, 2);
  assert.is((await gift(data, ['backup', file, '--reason', ' '])).code, 2);
  writeFileSync(file, 'mine');
  assert.equal(saidBy(await gift(data, ['backup', file])), {
    code: 1,
    out: '',
    err: `gift: ${file} is there already: name another file\n`,
  });
  assert.is(readFileSync(file, 'utf8'), 'mine');
  const nowhere = join(dir, 'no', 'folder', 'x');
  assert.equal(
    (await gift(data, ['backup', nowhere])).err,
    `gift: there is no folder ${join(dir, 'no', 'folder')}: make it, or name another file\n`,
  );
  const env = {
    DATA_DIR: data,
    EVENTSTORE_URL: 'esdb://user:hidden@127.0.0.1:1',
    TOKEN_KEY: 'k'.repeat(32),
    HASH_KEY: 'h'.repeat(32),
    MASTER_KEY: 'm'.repeat(40),
    SEAL_KEY: 's'.repeat(40),
    KEYS_URL: 'embedded',
    PAYMENTS: 'simulated',
    NOTIFICATIONS: 'simulated',
  };
  for (const args of [['backup', join(dir, 'x')], RESTORE(file)]) {
    const refused = await gift(env, args);
    assert.is(refused.code, 1);
    assert.match(refused.err, /^gift: EVENTSTORE_URL is set: .*"Backup and restore" in docs\/deployment\.md\n$/);
  }
  assert.equal(readdirSync(dir).toSorted(), ['data', 'gift.log']);
  assert.is((await logOf(data)).length, 6, 'nothing was recorded either');
});

test('reports a full disk and a folder without permission, and leaves nothing behind', async ({ dir, data, file }) => {
  await fill(data, 3_000);
  const limited = giftOnFullDisk(64, ['backup', file], { DATA_DIR: data });
  assert.equal([limited.status, limited.stdout], [1, '']);
  assert.ok(
    limited.stderr.endsWith(`gift: no space left for ${file}: name a file on another disk; nothing was left behind\n`),
    limited.stderr,
  );
  assert.equal(readdirSync(dir), ['data']);
  if (process.getuid?.() === 0) return;
  const closed = join(dir, 'closed');
  mkdirSync(closed);
  chmodSync(closed, 0o500);
  assert.match((await gift(data, ['backup', join(closed, 'x')])).err, /may not write/);
});

test('every kind of bad backup is refused with what is wrong, and nothing is restored', async (context) => {
  const { dir, data, file, fresh } = context;
  await fill(data, 40);
  await gift(data, ['backup', file]);
  freshWithKeys(context);
  const whole = readFileSync(file);
  const bad = join(dir, 'bad.log');
  const before = readdirSync(fresh);
  const refused = async (bytes: Uint8Array | string, words: RegExp): Promise<void> => {
    writeFileSync(bad, bytes);
    const ran = await gift(fresh, RESTORE(bad));
    assert.equal([ran.code, ran.out], [1, '']);
    assert.match(ran.err, words);
    assert.match(ran.err, /^gift: [^\n]+ nothing was restored: take another backup\n$/);
    assert.equal(readdirSync(fresh), before);
  };
  await refused('', /is empty/);
  await refused('a shopping list\n', /is not a backup of gift/);
  for (const rest of ['', '{"sha256":"0"}\n']) await refused(`{"gift_backup":3,"log_id":"x"}\n${rest}`, /is cut short/);
  await refused(
    whole.toString().replace(/"gift_backup":3,"version":"[^"]+"/, '"gift_backup":4,"version":"0.7.0"'),
    /has data format 4, and release \S+ reads 3 only: run release 0\.7\.0 or a later one/,
  );
  await refused(
    whole.toString().replace('"gift_backup":3', '"gift_backup":2'),
    /was written by a state before 0\.1\.0, which no release reads/,
  );
  await refused('x'.repeat(6_000_000), /too long/);
  for (const length of [whole.length - 1, whole.length - 50, whole.length - 100, whole.length / 2, 300, 60])
    await refused(whole.subarray(0, length), /is cut short|is not a backup/);
  await refused(Buffer.concat([whole, Buffer.from('\n')]), /is cut short, or its end has been altered/);
  const lines = whole.toString().split('\n');
  await refused([...lines.slice(0, 5), ...lines.slice(6)].join('\n'), /has been altered/);
  await refused([lines[0], lines[2], lines[1], ...lines.slice(3)].join('\n'), /has been altered/);
  // Any single byte.
  for (let n = 0; n < 40; n++) {
    const at = Math.floor((n / 40) * whole.length);
    const altered = Buffer.from(whole);
    altered[at] = altered[at]! ^ 1;
    await refused(altered, /altered|cut short|no backup/);
  }
  // Somebody who made the last hash fit.
  const { createHash } = await import('node:crypto');
  const forged = lines.slice(0, -2).join('\n').replace('"n":7', '"n":8') + '\n';
  await refused(`${forged}{"sha256":"${createHash('sha256').update(forged).digest('hex')}"}\n`, /contradicts itself/);
  writeFileSync(bad, whole);
  assert.is((await gift(fresh, RESTORE(bad))).code, 0, 'the very same bytes are taken');
});

test('refuses a restore without reason or file, from a folder, over data, or with other keys', async (context) => {
  const { dir, data, file, fresh } = context;
  await fill(data, 5);
  await gift(data, ['backup', file]);
  assert.equal(saidBy(await gift(fresh, ['restore', file])), {
    code: 2,
    out: '',
    err: 'gift: restore wants --reason "<why>"\n',
  });
  assert.equal((await gift(fresh, RESTORE(join(dir, 'none')))).err, `gift: there is no file ${join(dir, 'none')}\n`);
  assert.equal((await gift(fresh, RESTORE(data))).err, `gift: ${data} is a folder, not a backup\n`);
  const needed = await gift(fresh, RESTORE(file));
  assert.match(
    needed.err,
    /^gift: the HASH_KEY of this log is needed: put the installation's hash\.key into .*--without-key, which loses all logins, numbers and messages\n$/,
  );
  assert.not(existsSync(fresh), 'not even the folder was made');
  const foreign = await gift({ DATA_DIR: fresh, HASH_KEY: 'x'.repeat(40) }, RESTORE(file));
  assert.match(foreign.err, /^gift: this is not the HASH_KEY that the log was made with/);
  assert.not(existsSync(fresh));

  const before = await textsOf(data);
  const over = await gift(data, RESTORE(file));
  assert.match(over.err, /holds data already \(events\.db(-wal|-shm)?\): nothing is restored over it/);
  assert.equal(await textsOf(data), before);
  freshWithKeys(context);
  writeFileSync(join(fresh, 'read.db'), '');
  assert.match((await gift(fresh, RESTORE(file))).err, /holds data already \(read\.db\)/);
  rmSync(join(fresh, 'read.db'));
  mkdirSync(join(fresh, 'restoring-x'));
  assert.match((await gift(fresh, RESTORE(file))).err, /if none runs, remove .*restoring-x and repeat/);
  rmSync(join(fresh, 'restoring-x'), { recursive: true });
  rmSync(join(fresh, 'hash.key'));
  const withoutKey = await gift({ DATA_DIR: fresh, MONGODB_URL: 'mongodb://127.0.0.1:1/other' }, [
    ...RESTORE(file),
    '--without-key',
  ]);
  assert.is(withoutKey.code, 0);
  assert.match(withoutKey.out, /name an empty database in MONGODB_URL/);
  assert.match(withoutKey.out, /^WITHOUT ITS KEYS: all \d+ logins are lost for good/m);
  assert.equal(
    (await logOf(fresh)).map(({ data }) => (data as { without_key?: boolean }).without_key).at(-1),
    true,
    'so that another key may follow',
  );
});

test('a restore whose key store does not answer reports the log that it made, and fails', async (context) => {
  const { data, file, fresh } = context;
  await fill(data, 5);
  await gift(data, ['backup', file]);
  freshWithKeys(context);
  const env = { DATA_DIR: fresh, KEYS_URL: 'mongodb://127.0.0.1:1/keys?serverSelectionTimeoutMS=200' };
  const { code, out, err } = await gift(env, RESTORE(file));
  assert.is(code, 1);
  assert.match(out, new RegExp(`are in ${fresh} as log .*gift people erase-again.*start the service`, 's'));
  assert.match(
    err,
    /^gift: the log is restored, but its erasures were not repeated \(KEYS_URL: .*\): the service repeats them before it serves\n$/,
  );
  assert.is((await logOf(fresh)).at(-1)?.type, 'LogRestored');
});

test('a backup made where the key was not known says so, and is restored without asking for it', async ({
  data,
  file,
  fresh,
}) => {
  await withLogIn(data, async (store) => store.append('s', [event()], 'none'));
  const made = await gift(data, ['backup', file]);
  assert.match(made.out, /HASH_KEY \(neither set here nor in .*hash\.key: find it before you need it\)/);
  assert.not(existsSync(join(data, 'hash.key')), 'no key is made up');
  assert.is((await gift(fresh, RESTORE(file))).code, 0);
});

test('notes that a backup was made with another key, and needs no key at its restore', async ({
  data,
  file,
  fresh,
}) => {
  const own = 'o'.repeat(40);
  const stream = `voucherCode-seg-${keyedHash(Buffer.from(own))('code', 'C-1')}`;
  await withLogIn(data, async (store) =>
    store.append(
      stream,
      [{ ...event(), type: 'VoucherCodeAdded', data: { segment_id: 'seg', code: 'C-1', pin: null } }],
      'none',
    ),
  );
  const made = await gift({ DATA_DIR: data, HASH_KEY: 'x'.repeat(40) }, ['backup', file]);
  assert.is(made.code, 0);
  assert.match(
    made.err,
    /^gift: HASH_KEY: this is not the key that the event log was made with: .*; the backup is made all the same, and can't tell a restore which key is right\n$/,
  );
  assert.match(made.out, /HASH_KEY \(what is set in HASH_KEY is not the log's own: find that before you need it\)/);
  assert.is((await gift({ DATA_DIR: fresh, HASH_KEY: own }, RESTORE(file))).code, 0);
});

test('Ctrl-C ends either with 130 and leaves nothing; bars show on a terminal alone', async (context) => {
  const { dir, data, file, fresh } = context;
  await fill(data, 4_000);
  const stopping = (): { stderr: Writable & { isTTY: boolean }; signal: AbortSignal } => {
    const interrupted = new AbortController();
    return {
      stderr: Object.assign(new Writable({ write: (_chunk, _encoding, done) => (interrupted.abort(), done()) }), {
        isTTY: true,
      }),
      signal: interrupted.signal,
    };
  };
  const stopped = await gift(data, ['backup', file], stopping());
  assert.equal([stopped.code, stopped.out], [130, '']);
  assert.equal(readdirSync(dir), ['data']);
  const shown = await gift(data, ['backup', file], { tty: true });
  assert.is(shown.code, 0);
  assert.match(shown.err, /backing up/);
  freshWithKeys(context);
  const before = readdirSync(fresh);
  assert.is((await gift(fresh, RESTORE(file), stopping())).code, 130);
  assert.equal(readdirSync(fresh), before);
  const restored = await gift(fresh, RESTORE(file), { tty: true });
  assert.is(restored.code, 0);
  assert.match(restored.err, /checking the backup/);
});

test('killed with -9 in the middle, a restore leaves no log that could be taken for whole', async (context) => {
  const { data, file, fresh } = context;
  await fill(data, 12_000);
  assert.is((await gift(data, ['backup', file])).code, 0);
  freshWithKeys(context);
  const child = spawn(process.execPath, [GIFT, ...RESTORE(file)], {
    stdio: 'ignore',
    env: { PATH: process.env['PATH'], DATA_DIR: fresh },
  });
  const closed = once(child, 'close');
  const begun = (): string | undefined => readdirSync(fresh).find((name) => name.startsWith('restoring-'));
  while (begun() === undefined && child.exitCode === null) await sleep(1);
  child.kill('SIGKILL');
  await closed;
  assert.not(existsSync(join(fresh, 'events.db')));
  const again = await gift(fresh, RESTORE(file));
  assert.is(again.code, 1);
  rmSync(join(fresh, begun()!), { recursive: true });
  assert.is((await gift(fresh, RESTORE(file))).code, 0);
  assert.is((await logOf(fresh)).length, 24_002);
});

test('a backup that changes between its check and its use is not restored', async ({ dir, data, file }) => {
  await fill(data, 10);
  await gift(data, ['backup', file]);
  const { checkBackup } = await import('../../src/ops/backup/backupFile.js');
  const { BackupDamagedError } = await import('../../src/ops/backup/backupLines.js');
  const { restoreLog } = await import('../../src/ops/backup/restoreLog.js');
  const whole = readFileSync(file);
  const backup = await checkBackup(file);
  const options = { path: file, backup, by: { user: 'cli:x' }, reason: 'r', now: '2026-01-01T00:00:00.000Z' };
  let n = 0;
  for (const change of [
    () => truncateSync(file, 700),
    () => writeFileSync(file, whole.toString().replace('"n":3', '"n":4')),
    () => writeFileSync(file, whole.toString().replaceAll('["gift-5"', '{"gift-5"')),
    () => appendFileSync(file, 'x'),
  ]) {
    writeFileSync(file, whole);
    change();
    const target = join(dir, `target-${n++}`);
    const error = await withLogIn(target, async (store) =>
      restoreLog(store, options).catch((thrown: unknown) => thrown),
    );
    if (n < 4) assert.instance(error, BackupDamagedError);
    else
      assert.ok(error === undefined || error instanceof BackupDamagedError, 'what stands behind its end is never read');
  }
});

test.run();
