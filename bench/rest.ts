/**
 * A process with all roles and nothing to do, on the demo's data: its share of a core and how often its threads are
 * woken, by thread, and its resident memory. `--against=PATH` names an older state of the project that is built, which
 * rests at the same time, on its own demo's data. `--seconds=N` measures for longer than half a minute.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync, rmSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { scratch } from './support/data.js';
import { table, verdict } from './support/report.js';
import { residentMb, threadsOf, type Thread } from './support/threads.js';

const { values } = parseArgs({ options: { against: { type: 'string' }, seconds: { type: 'string', default: '30' } } });
const SECONDS = Number(values.seconds);
/** From the start until the process rests: threads are started for 5 s, and what the start left is collected. */
const SETTLE_MS = 15_000;
const START_MS = 120_000;
const HERE = fileURLToPath(new URL('../..', import.meta.url));

interface Side {
  readonly dir: string;
  readonly process: ChildProcess;
  readonly pid: number;
  readonly startedMb: number;
}

const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});

async function started(root: string, program: string, dir: string, until: RegExp): Promise<ChildProcess> {
  const log = `${dir}.${program}.log`;
  const output = openSync(log, 'w');
  const child = spawn(process.execPath, ['--enable-source-maps', join(root, `dist/service/${program}.js`)], {
    env: { PATH: process.env['PATH'], DATA_DIR: dir, PORT: '0', LOG_LEVEL: 'info' },
    stdio: ['ignore', output, output],
  });
  closeSync(output);
  running.add(child);
  child.once('exit', () => running.delete(child));
  for (const end = performance.now() + START_MS; !until.test(readFileSync(log, 'utf8')); await wait(50))
    if (child.exitCode !== null || performance.now() > end)
      throw new Error(`${program} did not start:\n${readFileSync(log, 'utf8').slice(-4_000)}`);
  rmSync(log);
  return child;
}

async function ended(child: ChildProcess): Promise<void> {
  const exit = once(child, 'exit');
  child.kill('SIGTERM');
  await exit;
}

async function open(root: string): Promise<Side> {
  const dir = join(scratch('rest'), 'data');
  await ended(await started(root, 'demo', dir, /API's description/));
  const child = await started(root, 'main', dir, /"msg":"started"/);
  return { dir, process: child, pid: child.pid ?? 0, startedMb: residentMb(child.pid ?? 0) };
}

/** Per second: share of a core in percent, and wake-ups; by thread. */
function rates(before: readonly Thread[], after: readonly Thread[]): ReadonlyMap<string, readonly [number, number]> {
  return new Map(
    after.map(({ name, used, sleeps }) => {
      const earlier = before.find((one) => one.name === name);
      const share = (used - (earlier?.used ?? 0)) / SECONDS / 10_000;
      return [name, [share, (sleeps - (earlier?.sleeps ?? 0)) / SECONDS]];
    }),
  );
}

const sides = [await open(HERE), ...(values.against === undefined ? [] : [await open(resolve(values.against))])];
await wait(SETTLE_MS);
const before = sides.map(({ pid }) => threadsOf(pid));
await wait(SECONDS * 1_000);
const found = sides.map(({ pid }, index) => rates(before[index] ?? [], threadsOf(pid)));

const sumOf = (threads: (typeof found)[number], of: 0 | 1): number =>
  [...threads.values()].reduce((all, one) => all + one[of], 0);
for (const [index, threads] of found.entries()) {
  const { pid, startedMb } = sides[index] as Side;
  console.log(`\n${index === 0 ? 'here' : 'there'}: ${threads.size} threads`);
  table([
    ...[...threads]
      .filter(([, [share, wakes]]) => share >= 0.005 || wakes >= 0.1)
      .map(([thread, [share, wakes]]) => ({ thread, '% of a core': share, 'wake-ups/s': wakes })),
    { thread: 'all threads', '% of a core': sumOf(threads, 0), 'wake-ups/s': sumOf(threads, 1) },
    { thread: 'resident at the start, MB', '% of a core': startedMb, 'wake-ups/s': '' },
    { thread: 'resident at rest, MB', '% of a core': residentMb(pid), 'wake-ups/s': '' },
  ]);
}
const [threads] = found;
const [here] = sides;
if (threads !== undefined && here !== undefined) {
  verdict('at rest', sumOf(threads, 0), { atMost: 1 }, ' % of a core');
  verdict('resident at rest', residentMb(here.pid), { atMost: 130 }, ' MB');
}
for (const side of sides) {
  await ended(side.process);
  rmSync(join(side.dir, '..'), { recursive: true });
}
