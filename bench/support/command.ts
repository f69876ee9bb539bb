/** Runs `gift …` in a process of its own, and watches it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

/** How often its memory is looked at, in ms. */
const POLL_MS = 20;

/** What came of a command. */
export interface CommandRun {
  /** The most resident memory it had, in MB (10^6 bytes). */
  readonly peakMb: number;
  /** What it wrote, each line as JSON. */
  readonly lines: readonly Readonly<Record<string, unknown>>[];
}

/** The command line, as it is shipped. */
export const GIFT = fileURLToPath(new URL('../../service/gift.js', import.meta.url));

/** A command under way. */
export interface Command {
  /** What it has written so far. */
  lines(): readonly Readonly<Record<string, unknown>>[];
  /** Ends it as Ctrl-C does; `ended` then fails. */
  interrupt(): void;
  /** @throws Error when it exits with another code than 0 */
  readonly ended: Promise<CommandRun>;
}

/** Starts one on a data folder; it writes JSON lines. */
export function startCommand(dir: string, args: readonly string[]): Command {
  const child = spawn(process.execPath, [GIFT, ...args], {
    env: { PATH: process.env['PATH'], DATA_DIR: dir },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
  const lines = (): Readonly<Record<string, unknown>>[] =>
    text
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Readonly<Record<string, unknown>>);
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);

  async function watched(): Promise<CommandRun> {
    let peakMb = 0;
    const closed = once(child, 'close');
    while (child.exitCode === null && child.signalCode === null) {
      peakMb = Math.max(peakMb, peakOf(child.pid ?? 0));
      await Promise.race([closed, wait(POLL_MS)]);
    }
    await closed;
    process.off('exit', kill);
    if (child.exitCode !== 0)
      throw new Error(`gift ${args.join(' ')} ended with ${child.exitCode ?? child.signalCode}`);
    return { peakMb, lines: lines() };
  }
  const ended = watched();
  // Whoever waits for it gets the error.
  ended.catch(() => undefined);
  return { lines, interrupt: () => void child.kill('SIGINT'), ended };
}

/** The kernel's own record of the most; 0 once the process has gone. */
function peakOf(pid: number): number {
  try {
    return (Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) * 1_024) / 1e6;
  } catch {
    return 0;
  }
}
