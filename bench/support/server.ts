/** Starts what is measured in a process of its own: the service, or a baseline to hold it against. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { residentMb, settled, threadsOf } from './threads.js';

/** A running server. */
export interface Server {
  readonly url: string;
  /** From starting the process until it said where it listens, in milliseconds. */
  readonly startMs: number;
  /** From starting the process until it answered that it is ready; only of the service. */
  readonly readyMs: number;
  /** Seconds of processor time used so far, all threads. */
  cpuSeconds(): number;
  /** Resident memory in MB (10^6 bytes). */
  residentMb(): number;
  /** The longest delay of the main thread's event loop since the last call, in milliseconds. */
  loopDelay(): Promise<number>;
  stop(): Promise<void>;
}

const dist = fileURLToPath(new URL('../..', import.meta.url));
/** How long anything may take to start: a folder that was never opened is folded first. */
const START_MS = 1_200_000;

// A bench that fails must not leave its servers behind.
const running = new Set<ChildProcess>();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(1));

/**
 * Starts the service on a data folder; its log goes to `service.log` there. `profile`: a folder that a CPU profile is
 * written to at the end; `settings`: further ones, such as where the engines are.
 */
export async function startService(
  dir: string,
  options: {
    readonly roles?: string;
    readonly profile?: string;
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<Server> {
  const log = join(dir, 'service.log');
  const env = {
    PATH: process.env['PATH'],
    DATA_DIR: dir,
    PORT: '0',
    LOG_LEVEL: 'info',
    // Counted, and never reached.
    CLIENT_RATE_LIMIT: '1000000000',
    USER_RATE_LIMIT: '1000000000',
    // The clients of a bench wait for their turn, while code is still slow, too.
    REQUEST_WAIT_MS: '0',
    ...(options.roles === undefined ? {} : { ROLES: options.roles }),
    ...options.settings,
  };
  const profiling = options.profile === undefined ? [] : ['--cpu-prof', `--cpu-prof-dir=${options.profile}`];
  return start(
    [
      '--enable-source-maps',
      ...profiling,
      '--import',
      join(dist, 'bench/support/loopProbe.js'),
      join(dist, 'service/main.js'),
    ],
    env,
    log,
    /"url":"([^"]+)"/,
    '/readyz',
  );
}

let baselines = 0;

/** Starts a baseline of `bench/baseline` with its settings. */
export async function startBaseline(
  name: string,
  dir: string,
  settings: Readonly<Record<string, string>>,
): Promise<Server> {
  const env = { PATH: process.env['PATH'], ...settings };
  return start(
    ['--import', join(dist, 'bench/support/loopProbe.js'), join(dist, `bench/baseline/${name}.js`)],
    env,
    join(dir, `${name}-${baselines++}.log`),
    /^(http\S+)$/m,
  );
}

async function start(
  args: readonly string[],
  env: NodeJS.ProcessEnv,
  log: string,
  listening: RegExp,
  ready?: string,
): Promise<Server> {
  const output = openSync(log, 'w');
  const began = performance.now();
  const child = spawn(process.execPath, [...args], { env, stdio: ['ignore', output, output, 'ipc'] });
  closeSync(output);
  running.add(child);
  child.once('exit', () => running.delete(child));
  const url = await until(child, log, () => listening.exec(readFileSync(log, 'utf8'))?.[1]);
  const startMs = performance.now() - began;
  if (ready !== undefined)
    await until(child, log, async () => ((await fetch(url + ready)).status === 200 ? true : undefined));
  const pid = child.pid ?? 0;
  /** The process, and those that it has started. */
  const processes = (): readonly number[] => [pid, ...childrenOf(pid)];
  return {
    url,
    startMs,
    readyMs: performance.now() - began,
    cpuSeconds: () => processes().reduce((sum, one) => sum + cpuSecondsOf(one), 0),
    residentMb: () => processes().reduce((sum, one) => sum + residentMb(one), 0),
    async loopDelay() {
      child.send('loopDelay');
      const [delay] = (await once(child, 'message')) as [number];
      return delay;
    },
    async stop() {
      if (child.exitCode !== null) return;
      const ended = once(child, 'exit');
      child.kill('SIGTERM');
      await ended;
    },
  };
}

/** Waits until a server has done what follows requests. */
export const atRest = async ({ cpuSeconds }: Pick<Server, 'cpuSeconds'>): Promise<void> =>
  settled(() => cpuSeconds() * 1e6);

function childrenOf(pid: number): readonly number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
}

/** Of the threads that live: the process's own figure counts in hundredths of a second. */
const cpuSecondsOf = (pid: number): number => threadsOf(pid).reduce((sum, { used }) => sum + used, 0) / 1e6;

async function until<T>(
  child: ChildProcess,
  log: string,
  look: () => T | undefined | Promise<T | undefined>,
): Promise<T> {
  const deadline = performance.now() + START_MS;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`the server did not start:\n${readFileSync(log, 'utf8').slice(-4_000)}`);
    await wait(5);
  }
}
