/** Erasures over restores: of the log, of the key store. */
import assert from 'node:assert/strict';
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import { loadConfig } from '../../src/service/config.js';
import { openLog } from '../../src/service/engines.js';
import { EMBEDDED } from '../support/engines/engines.js';
import { CATALOGUE } from '../support/fixtures/testCatalogue.js';
import { gift } from '../support/service/cli.js';
import { eventOf } from '../support/service/testLog.js';
import { type Service, startService } from '../support/service/service.js';

interface Made {
  readonly dir: string;
  /** Where Bob was erased after both backups. */
  readonly data: string;
}

const test = suite<Made>('erasures and backups');
test.before(async (context) => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-erasures-'));
  const data = join(dir, 'data');
  mkdirSync(data);
  const service = await startService({ dataDir: data, engines: EMBEDDED, catalogue: CATALOGUE });
  try {
    assert.equal((await gift(data, ['backup', join(dir, 'log')])).code, 0);
    assert.equal((await gift(data, ['keys', 'backup', join(dir, 'keys')])).code, 0);
    const erased = await gift(data, ['people', 'erase', 'bob', '--yes', '--reason', 'asked for it']);
    assert.equal(erased.code, 0, erased.err);
  } finally {
    await service.close();
  }
  Object.assign(context, { dir, data } satisfies Made);
});
test.after(({ dir }) => rmSync(dir, { recursive: true }));

/** The files of a data folder whose names begin so, in a new one. */
function folderWith({ dir, data }: Made, name: string, begins: RegExp): string {
  const made = join(dir, name);
  mkdirSync(made);
  for (const file of readdirSync(data).filter((one) => begins.test(one))) cpSync(join(data, file), join(made, file));
  return made;
}

async function bobIn(dataDir: string): Promise<{ readonly name: unknown; readonly last: string | undefined }> {
  const { events } = await openLog(loadConfig({ DATA_DIR: dataDir }));
  try {
    const history = await events.read('user-bob');
    const [first] = history as readonly { readonly data: { readonly name?: string } }[];
    return { name: first?.data.name, last: history.at(-1)?.type };
  } finally {
    await events.close();
  }
}

async function canLogIn(service: Service, user: string): Promise<boolean> {
  try {
    await service.userToken(user);
    return true;
  } catch (error) {
    assert.match((error as Error).message, /^no token: 401 /);
    return false;
  }
}

test('repeats an erasure in a log that is restored from before it', async (made) => {
  const restored = folderWith(made, 'restored', /^(keys\.db|.*\.key$)/);
  const { code, out, err } = await gift(restored, ['restore', join(made.dir, 'log'), '--reason', 'a drill']);
  assert.equal(code, 0, err);
  assert.match(out, /1 persons whose erasure was undone were erased again/);
  assert.deepEqual(await bobIn(restored), { name: '', last: 'PersonErased' });
  const service = await startService({ dataDir: restored, engines: EMBEDDED });
  try {
    assert.deepEqual([await canLogIn(service, 'bob'), await canLogIn(service, 'ann')], [false, true]);
  } finally {
    await service.close();
  }
});

test('repeats an erasure in a key store that is restored from before it', async (made) => {
  const old = folderWith(made, 'old-keys', /^(events\.db|.*\.key$)/);
  const { code, out, err } = await gift(old, ['keys', 'restore', join(made.dir, 'keys')]);
  assert.equal(code, 0, err);
  assert.match(out, /1 erased persons, whose rows were in the backup, were erased again/);
  assert.deepEqual(await bobIn(old), { name: '', last: 'PersonErased' });
});

test('repeats an erasure at a start, whoever has put the log back', async (made) => {
  const put = folderWith(made, 'put-back', /^(keys\.db|.*\.key$)/);
  const without = folderWith(made, 'without-keys', /^hash\.key$/);
  assert.equal((await gift(without, ['restore', join(made.dir, 'log'), '--reason', 'a drill'])).code, 0);
  for (const file of readdirSync(without).filter((one) => one.startsWith('events.db')))
    cpSync(join(without, file), join(put, file));
  assert.notEqual((await bobIn(put)).last, 'PersonErased');
  const service = await startService({ dataDir: put, engines: EMBEDDED });
  await service.close();
  assert.deepEqual(await bobIn(put), { name: '', last: 'PersonErased' });
});

test('notices a key store that was put back by hand, before anything is served', async (made) => {
  const old = folderWith(made, 'old-file', /^(events\.db|.*\.key$)/);
  const without = folderWith(made, 'without-log', /^.*\.key$/);
  assert.equal((await gift(without, ['keys', 'restore', join(made.dir, 'keys')])).code, 0);
  for (const file of readdirSync(without).filter((one) => one.startsWith('keys.db')))
    cpSync(join(without, file), join(old, file));
  assert.notEqual((await bobIn(old)).name, '');
  // No process with the role `processor` runs.
  const service = await startService({
    dataDir: old,
    engines: EMBEDDED,
    split: false,
    env: { ROLES: 'api,projector' },
  });
  try {
    assert.deepEqual(await bobIn(old), { name: '', last: 'PersonErased' });
  } finally {
    await service.close();
  }
});

test('repeats from a list an erasure that log and key store do not know', async (made) => {
  const old = folderWith(made, 'both-old', /^.*\.key$/);
  assert.equal((await gift(old, ['keys', 'restore', join(made.dir, 'keys')])).code, 0);
  const restored = await gift(old, ['restore', join(made.dir, 'log'), '--reason', 'a drill']);
  assert.equal(restored.code, 0, restored.err);
  assert.match(restored.out, /gift people erase-again repeats them from a list of gift people erasures/);
  assert.notEqual((await bobIn(old)).last, 'PersonErased');

  const list = join(made.dir, 'erasures.jsonl');
  const listed = await gift(made.data, ['people', 'erasures']);
  assert.equal(listed.code, 0, listed.err);
  assert.ok(!/Bob|bob@|\+44/.test(listed.out), listed.out);
  writeFileSync(list, `${listed.out}my diary\n`);
  const refused = await gift(old, ['people', 'erase-again', list]);
  assert.match(refused.err, /line 2 of .* is not an erasure of gift people erasures; nothing was done/);
  writeFileSync(list, listed.out);
  for (const said of ['1 persons were erased again\n', '0 persons were erased again\n']) {
    const again = await gift(old, ['people', 'erase-again', list]);
    assert.deepEqual([again.code, again.out], [0, said], again.err);
  }
  assert.deepEqual(await bobIn(old), { name: '', last: 'PersonErased' });

  const [bob = ''] = listed.out.split('\n');
  const users = join(made.dir, 'users.json');
  const gone = { ...(JSON.parse(bob) as object), id: 'C'.repeat(22), person: { kind: 'user', userId: 'newer' } };
  writeFileSync(list, JSON.stringify(gone));
  assert.equal((await gift(old, ['people', 'erase-again', list])).code, 0);
  writeFileSync(
    users,
    JSON.stringify({ users: [{ id: 'newer', username: 'newer@x.example', password: 'newer-newer' }] }),
  );
  const taken = await gift(old, ['import', users]);
  assert.equal(taken.code, 1, 'also of a user who came after the backup');
  assert.match(taken.err, /users\[0\]\.id: is that of an erased user/);

  const number = await withPendingPurchase(old);
  const of = (id: string, person: object): string =>
    JSON.stringify({ ...(JSON.parse(bob) as object), id: id.repeat(22), person });
  const lines = [of('A', { kind: 'number', phoneId: number }), of('B', { kind: 'user', userId: 'ann' })];
  writeFileSync(list, lines.join('\n'));
  const some = await gift(old, ['people', 'erase-again', list]);
  assert.equal(some.code, 1);
  assert.match(some.err, /not all erasures were repeated; everything else is done/);
  assert.deepEqual(some.out.split('\n').slice(0, -1), [
    '0 persons were erased again',
    `phone:${number} is not erased again: this number is that of a user: erase the user: gift people find names them`,
    'ann is not erased again: it waits for the payment of transaction slow; a service with the role processor finishes it once that is settled',
  ]);
});

/** One of Ann's. @returns the id of a number that a user has */
async function withPendingPurchase(dataDir: string): Promise<string> {
  const { events } = await openLog(loadConfig({ DATA_DIR: dataDir }));
  try {
    const purchase = { transaction_id: 'slow', seed: '5e'.repeat(32), buyer_id: 'ann' };
    const data = { ...purchase, receivers: [{}], payment_reference: 'none' };
    await events.append('transaction-slow', [eventOf('GiftsPurchased', data)], 'none');
    for await (const batch of events.readAll(undefined, { types: ['PhoneTaken'] }))
      for (const { stream, data: taken } of batch.events)
        if ((taken as { readonly user_id: string }).user_id !== 'bob') return stream.slice('phone-'.length);
    throw new Error('nobody has a number');
  } finally {
    await events.close();
  }
}

test.run();
