/**
 * What the command line and the service leave in a data folder that is another user's, when root runs them; and what
 * only looks leaves at all.
 */
import { chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pino from 'pino';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { startApp } from '../../src/service/app.js';
import { loadConfig } from '../../src/service/config.js';
import { gift } from '../support/service/cli.js';
import { testWhere } from '../support/assertions/testWhere.js';
import { untilReady } from '../support/service/service.js';

const test = suite<{ dir: string }>('whose the files of a data folder are');
/** `nobody`, by number. */
const OWNER = 65_534;
const root = process.geteuid?.() === 0;

test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'gift-owner-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true, force: true }));

/** What stands in the folder and below, with whose it is. */
const owners = (dir: string): Readonly<Record<string, number>> =>
  Object.fromEntries(
    readdirSync(dir, { recursive: true }).map((name) => [String(name), lstatSync(join(dir, String(name))).uid]),
  );

testWhere(
  test,
  root,
  'only root gives files away',
  "whatever root makes in the folder of the service's user is that user's",
  async ({ dir }) => {
    const data = join(dir, 'data');
    mkdirSync(data);
    chownSync(data, OWNER, OWNER);
    assert.is((await gift(data, ['import', 'examples/demo.json'])).code, 0);
    const app = await startApp(loadConfig({ PORT: '0', DATA_DIR: data }), pino({ level: 'silent' }));
    await untilReady(app.url ?? '');
    const found = owners(data);
    await app.close();
    for (const name of [
      'events.db',
      'events.db-wal',
      'read.db',
      'read.db-wal',
      'read.db-shm',
      'bus.lock',
      'bus.sock',
      'keys.db',
      'hash.key',
      'master.key',
      'seal.key',
      'token.key',
    ])
      assert.is(found[name], OWNER, name);
    assert.equal(
      Object.entries(found).filter(([, uid]) => uid !== OWNER),
      [],
    );
    assert.is((await gift(data, ['backup', join(dir, 'copy')])).code, 0);
    assert.is((await gift(data, ['projections', 'verify', 'gifts'])).code, 0);
    const other = join(dir, 'other');
    mkdirSync(other);
    chownSync(other, OWNER, OWNER);
    assert.is(
      (await gift({ DATA_DIR: other }, ['restore', join(dir, 'copy'), '--reason', 'drill', '--without-key'])).code,
      0,
    );
    assert.equal(
      [...Object.entries(owners(data)), ...Object.entries(owners(other))].filter(([, uid]) => uid !== OWNER),
      [],
    );
  },
);

test('what only looks makes no read store', async ({ dir }) => {
  assert.is((await gift(dir, ['import', 'examples/demo.json'])).code, 0);
  for (const args of [
    ['history', '0123456789abcdef0123'],
    ['audit', 'totals'],
    ['projections', 'status'],
    ['projections', 'verify', 'gifts'],
    ['projections', 'verify', 'gifts', '--sample', '10'],
    ['parked', 'list'],
    ['parked', 'show', 'x'],
    ['payments', 'reconcile', '--day', new Date().toISOString().slice(0, 10)],
    ['purchases', 'refunds', '6ec0bd7f11c043da975e2a8ad9ebae0b'],
  ]) {
    const { code, err } = await gift(dir, args);
    assert.ok(code === 0 || code === 1, `${args.join(' ')}: ${err}`);
    assert.not(existsSync(join(dir, 'read.db')), args.join(' '));
  }
});

test.run();
