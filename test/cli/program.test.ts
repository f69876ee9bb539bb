import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { program } from '../../src/cli/program.js';
import { EXIT } from '../../src/cli/terminal.js';
import { gift, sink } from '../support/service/cli.js';
import { GIFT } from '../support/service/programs.js';
import { testWhere } from '../support/assertions/testWhere.js';

const test = suite('cli/program');

function pathsOf(command: Command, path: readonly string[]): (readonly string[])[] {
  return [path, ...command.commands.flatMap((inner) => pathsOf(inner, [...path, inner.name()]))];
}

test('every command and group says how it is used, with an example of its own', async () => {
  const paths = pathsOf(
    program({
      stdin: Readable.from([]),
      stdout: sink().stream,
      stderr: sink().stream,
      env: {},
      signal: new AbortController().signal,
    }),
    [],
  );
  assert.ok(paths.length > 30, `${paths.length}`);
  for (const path of paths) {
    const { code, out, err } = await gift({}, [...path, '--help']);
    assert.equal([code, err], [0, ''], path.join(' '));
    assert.match(
      out,
      new RegExp(`\\nExamples?:\\n[^]*^  \\$ (?:\\S+=\\S+ )?gift ${path.join(' ')}`, 'm'),
      path.join(' '),
    );
  }
});

test('names the remedy for a file that disk or rights keep from being opened', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'cli-program-'));
  assert.is((await gift(dir, ['import', 'examples/demo.json'])).code, 0);
  // SQLite makes them beside the log, and can't.
  for (const beside of ['events.db-wal', 'events.db-shm']) {
    rmSync(join(dir, beside), { force: true });
    mkdirSync(join(dir, beside));
  }
  const { code, out, err } = await gift(dir, ['projections', 'status']);
  assert.equal([code, out], [EXIT.failed, '']);
  assert.match(
    err,
    /events\.db: unable to open .*: see that this user may write all files there, and that it is not mounted read-only\n$/,
  );
  rmSync(dir, { recursive: true });
});

testWhere(
  test,
  existsSync('/dev/full'),
  'no /dev/full here',
  'fails with one line when a result can not be written',
  () => {
    const full = openSync('/dev/full', 'w');
    try {
      const { status, stderr } = spawnSync(process.execPath, [GIFT, '--help'], {
        stdio: ['ignore', full, 'pipe'],
        encoding: 'utf8',
      });
      assert.is(status, 1);
      assert.match(stderr, /^gift: .*could not be written.*ENOSPC.*\n$/);
      assert.is(spawnSync(process.execPath, [GIFT, 'nonsense'], { stdio: ['ignore', 'ignore', full] }).status, 2);
    } finally {
      closeSync(full);
    }
  },
);

test('a system user without a name acts under its number', () => {
  const dir = mkdtempSync(join(tmpdir(), 'gift-nameless-'));
  const nameless =
    "import os from 'node:os'; import { syncBuiltinESMExports } from 'node:module'; os.userInfo = () => { throw new Error('uv_os_get_passwd returned ENOENT'); }; syncBuiltinESMExports();";
  const run = (...args: string[]): SpawnSyncReturns<string> =>
    spawnSync(process.execPath, ['--import', `data:text/javascript,${encodeURIComponent(nameless)}`, GIFT, ...args], {
      input: '{}',
      env: { PATH: process.env['PATH'], DATA_DIR: dir },
      encoding: 'utf8',
    });
  assert.is(run('import', '-').stderr, '');
  run('audit', 'access', '--json');
  assert.match(run('audit', 'access', '--json').stdout, new RegExp(`"by":\\{"user":"cli:${process.getuid?.()}@`));
  rmSync(dir, { recursive: true });
});

test.run();
