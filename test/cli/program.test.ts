import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { closeSync, existsSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import type { Command } from 'commander';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { inputFile, inputFiles } from '../../src/cli/fileNames.js';
import { program } from '../../src/cli/program.js';
import { EXIT } from '../../src/cli/terminal.js';
import { LOG_VKEY } from '../support/evidence/bundles.js';
import { gift, sink } from '../support/service/cli.js';
import { GIFT } from '../support/service/programs.js';
import { testWhere } from '../support/assertions/testWhere.js';

const test = suite('cli/program');

function pathsOf(command: Command, path: readonly string[]): (readonly string[])[] {
  return [path, ...command.commands.flatMap((inner) => pathsOf(inner, [...path, inner.name()]))];
}

const whole = (): Command =>
  program({
    stdin: Readable.from([]),
    stdout: sink().stream,
    stderr: sink().stream,
    env: {},
    signal: new AbortController().signal,
  });

test('every command and group says how it is used, with an example of its own', async () => {
  const paths = pathsOf(whole(), []);
  assert.ok(paths.length > 30, `${paths.length}`);
  for (const path of paths) {
    const { code, out, err } = await gift({}, [...path, '--help']);
    assert.equal([code, err], [0, ''], path.join(' '));
    assert.match(
      out,
      new RegExp(`\\nExamples?:\\n[^]*^  \\$ (?:\\S+=\\S+ )?gift ${path.join(' ')}`, 'm'),
      path.join(' '),
    );
    for (const line of out.split('\n')) assert.ok(line.length <= 80 || line.startsWith('  $ '), line);
  }
});

/** Each argument and option that names a file or folder, as its command is called with `-` for it. */
function callsWithDash(command: Command, path: readonly string[]): { call: readonly string[]; parses: unknown }[] {
  const isName = (text: string): boolean => /<(file|folder|log)>/.test(text);
  const needed = command.options.filter(({ mandatory, flags }) => mandatory && isName(flags));
  return [
    ...command.registeredArguments
      .filter((argument) => isName(`<${argument.name()}>`))
      .map((argument) => ({ call: [...path, '-'], parses: argument.parseArg })),
    ...command.options
      .filter(({ flags }) => isName(flags))
      .map(({ long, parseArg }) => ({
        call: [
          ...path,
          ...command.registeredArguments.map(() => './there'),
          ...needed.filter((option) => option.long !== long).map((option) => `${option.long}=./there`),
          `${long}=-`,
        ],
        parses: parseArg,
      })),
    ...command.commands.flatMap((inner) => callsWithDash(inner, [...path, inner.name()])),
  ];
}

test('says which release it is', async () => {
  const { version } = JSON.parse(readFileSync(new URL('../../../package.json', import.meta.url), 'utf8')) as {
    readonly version: string;
  };
  const { code, out, err } = await gift({}, ['--version']);
  assert.equal([code, out, err], [0, `${version}\n`, '']);
});

test('takes - as standard input or refuses it, for every argument and option that names a file', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'cli-program-'));
  const calls = callsWithDash(whole(), []);
  const refused: string[] = [];
  for (const { call, parses } of calls) {
    if (parses === inputFile || parses === inputFiles) continue;
    const { code, err } = await gift(dir, call);
    assert.is(code, EXIT.usage, call.join(' '));
    assert.match(err, /'-' is invalid.*: name .*; \.\/- is one of that name\./, call.join(' '));
    refused.push(call.join(' '));
  }
  assert.equal(refused, [
    'copy --to=./there --from=-',
    'copy --from=./there --to=-',
    'backup -',
    'restore -',
    'keys backup -',
    'keys restore -',
    'people verify-erasure --also=-',
    'audit check ./there --tlog-proofs=-',
    'audit verify --progress=-',
    'witness --dir=-',
  ]);
  assert.is(calls.length - refused.length, 13);
  assert.not.ok(existsSync('-'));
  rmSync(dir, { recursive: true });
});

test('reads a list, a proof and a signed head from standard input', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'cli-program-'));
  assert.is((await gift(dir, ['import', 'examples/demo.json'])).code, 0);
  const stdin = (): Readable => Readable.from([Buffer.from('nothing of that kind\n')]);
  const said = async (...args: readonly string[]): Promise<string> => (await gift(dir, args, { stdin: stdin() })).err;
  assert.match(await said('people', 'erase-again', '-'), /line 1 of standard input is not an erasure/);
  assert.match(await said('audit', 'check', '-', '--key', LOG_VKEY), /standard input proves nothing/);
  assert.match(await said('audit', 'verify', '--checkpoint', '-'), /standard input is not a signed head/);
  assert.match(await said('audit', 'verify', '--checkpoint', '-', '--checkpoint', '-'), /Standard input is read once/);
  rmSync(dir, { recursive: true });
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
  assert.match(run('import', '-').stderr, /^gift: there was no event log in [^\n]*\n$/);
  run('audit', 'access', '--json');
  assert.match(run('audit', 'access', '--json').stdout, new RegExp(`"by":\\{"user":"cli:${process.getuid?.()}@`));
  rmSync(dir, { recursive: true });
});

test.run();
