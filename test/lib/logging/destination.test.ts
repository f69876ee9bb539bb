import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, mkdtempSync, openSync, readFileSync, readSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { openLogDestination } from '../../../src/lib/logging/destination.js';
import { fillDisk, NO_MOUNT, smallDisk } from '../../support/faults/smallDisk.js';
import { testWhere } from '../../support/assertions/testWhere.js';
import { until } from '../../support/assertions/until.js';

interface Context {
  folder: string;
}

const test = suite<Context>('where log lines go', { folder: '' });
test.before.each((context) => {
  context.folder = mkdtempSync(join(tmpdir(), 'log-'));
});
test.after.each(({ folder }) => rmSync(folder, { recursive: true, force: true }));

test('writes few lines a little later, many at once, in order', async ({ folder }) => {
  const path = join(folder, 'log');
  const fd = openSync(path, 'a');
  const log = openLogDestination(fd);
  log.write('one\n');
  assert.is(readFileSync(path, 'utf8'), '');
  while (readFileSync(path, 'utf8') === '') await wait(20);
  const lines = Array.from({ length: 5_000 }, (_, n) => `line ${n} ${'x'.repeat(40)}\n`);
  for (const line of lines) log.write(line);
  while (readFileSync(path, 'utf8').length < lines.join('').length + 4) await wait(20);
  assert.is(readFileSync(path, 'utf8'), `one\n${lines.join('')}`);
  closeSync(fd);
});

test('writes waiting lines at once when flushed', ({ folder }) => {
  const path = join(folder, 'log');
  const fd = openSync(path, 'a');
  const log = openLogDestination(fd);
  log.flushSync();
  log.write('one\n');
  log.write('two é\n');
  log.flushSync();
  assert.is(readFileSync(path, 'utf8'), 'one\ntwo é\n');
  closeSync(fd);
});

test('stops nothing when the log has no reader any more', async ({ folder }) => {
  const fd = openSync(join(folder, 'log'), 'a');
  closeSync(fd);
  const later = openLogDestination(fd);
  later.write('lost\n');
  await wait(300);
  later.write('lost too\n');
  later.flushSync();
  const atOnce = openLogDestination(fd);
  atOnce.write('lost\n');
  atOnce.flushSync();
});

const disk = smallDisk(1);
testWhere(test, disk !== undefined, NO_MOUNT, 'a disk that was full takes lines again once it has room', async () => {
  const { dir, remove } = disk!;
  const path = join(dir, 'log');
  const filler = join(dir, 'filler');
  const fd = openSync(path, 'a');
  try {
    const log = openLogDestination(fd);
    fillDisk(filler);
    log.write(`${'x'.repeat(9_000)}\n`);
    await wait(300);
    log.flushSync();
    log.write('meanwhile\n');
    rmSync(filler);
    log.write('afterwards\n');
    await until(() => readFileSync(path, 'utf8').includes('afterwards'), 'the later line');
    assert.is(readFileSync(path, 'utf8'), `${'x'.repeat(9_000)}\nmeanwhile\nafterwards\n`);
  } finally {
    closeSync(fd);
    remove();
  }
});

const MODULE = new URL('../../../src/lib/logging/destination.js', import.meta.url).href;

/** A script with `openLogDestination` at hand. */
const scriptOf = (script: string): string => `import { openLogDestination } from ${JSON.stringify(MODULE)};\n${script}`;

/** A process that runs such a script. */
function writer(script: string) {
  return spawn(process.execPath, ['--input-type=module', '-e', scriptOf(script)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

test('mixes no lines of processes that write to the same pipe', async () => {
  const script = scriptOf(`
    const log = openLogDestination(1, { shared: true });
    for (let n = 0; n < 5_000; n++) log.write(n + ' ' + 'x'.repeat(100 + (n % 90)) + '\\n');
  `);
  const both = '"$0" --input-type=module -e "$1" & "$0" --input-type=module -e "$1" & wait';
  const child = spawn('sh', ['-c', both, process.execPath, script], { stdio: ['ignore', 'pipe', 'inherit'] });
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await once(child, 'close');
  const lines = output.split('\n').slice(0, -1);
  assert.is(lines.length, 10_000);
  assert.equal(
    lines.filter((line) => !/^\d+ x{100,189}$/.test(line)),
    [],
  );
});

test('drops lines of a slow reader and logs how many', async () => {
  const child = writer(`
    const log = openLogDestination(1);
    const line = 'x'.repeat(999) + '\\n';
    for (let n = 0; n < 40_000; n++) log.write(line);
    let later = 0;
    const timer = setInterval(() => log.write('later ' + ++later + '\\n'), 20);
    setTimeout(() => clearInterval(timer), 1500);
  `);
  await wait(500);
  let output = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (output += chunk));
  await once(child, 'close');
  const told = output.split('\n').filter((line) => line.startsWith('{'));
  assert.is(told.length, 1);
  const { dropped } = JSON.parse(told[0] ?? '') as { dropped: number };
  // The first of the later lines may be dropped too: the process is slow.
  const later = Number(/later (\d+)\n$/.exec(output)?.[1]);
  assert.ok(later > 1);
  assert.is(dropped + (output.match(/x{999}|later /g)?.length ?? 0), 40_000 + later);
});

/** A pipe that says so when it is full, open for both ends. */
function pipe(folder: string): number {
  const path = join(folder, 'pipe');
  execFileSync('mkfifo', [path]);
  return openSync(path, constants.O_RDWR | constants.O_NONBLOCK);
}

/** The content of a pipe. */
function drained(fd: number): string {
  const chunk = Buffer.alloc(65_536);
  let text = '';
  for (;;) {
    try {
      text += chunk.toString('utf8', 0, readSync(fd, chunk));
    } catch (error) {
      assert.is((error as NodeJS.ErrnoException).code, 'EAGAIN');
      return text;
    }
  }
}

test('tries a full pipe again, without a line lost or twice', async ({ folder }) => {
  const fd = pipe(folder);
  const log = openLogDestination(fd);
  const lines = Array.from({ length: 3_000 }, (_, n) => `line ${n} ${'y'.repeat(90)}\n`);
  for (const line of lines) log.write(line);
  await wait(150);
  let text = '';
  while (text.length < lines.join('').length) {
    text += drained(fd);
    await wait(5);
  }
  assert.is(text, lines.join(''));
  closeSync(fd);
});

test('does not wait for ever for a full pipe at the end of the process', ({ folder }) => {
  const fd = pipe(folder);
  const log = openLogDestination(fd);
  log.write(`${'y'.repeat(16_000)}\n`);
  log.flushSync();
  assert.is(drained(fd).length, 16_001);
  log.write('z'.repeat(1_000_000));
  log.flushSync();
  closeSync(fd);
});

test.run();
