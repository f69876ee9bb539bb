/**
 * Runs the service under one seed or several, and says what happened:
 * `npm run simulate -- --seed 7 [--seeds 20] [--minutes 5] [--log] [--entries]`.
 * Each of several seeds has a program of its own.
 */
import { execFile } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs, promisify } from 'node:util';
import { inParallel } from '../../src/lib/async/inParallel.js';
import type { History } from './model/history.js';
import { simulate } from './simulate.js';

const { values } = parseArgs({
  options: {
    /** The first seed. */
    seed: { type: 'string', default: '1' },
    /** Number of seeds, each one greater than the one before. */
    seeds: { type: 'string', default: '1' },
    /** Virtual minutes in which clients act. */
    minutes: { type: 'string', default: '5' },
    /** Prints the service's log. */
    log: { type: 'boolean', default: false },
    /** Prints each entry. */
    entries: { type: 'boolean', default: false },
  },
});

const MAX_OUTPUT = 2 ** 30;
const print = (line: string): void => void process.stdout.write(`${line.trimEnd()}\n`);
const shown = (counts: ReadonlyMap<string, number>): string =>
  [...counts].map(([name, count]) => `${name}: ${count}`).join(', ');

/** How often each kind of request had each status. */
function answersOf(history: History): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { operation, answer } of history) {
    const name = `${operation.kind} ${answer?.status ?? 'unknown'}`;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1)));
}

async function runSeed(seed: number | string): Promise<void> {
  const began = performance.now();
  try {
    const { simulation, history, findings } = await simulate({
      seed,
      forMs: Number(values.minutes) * 60_000,
      ...(values.log ? { onLine: print } : {}),
      ...(values.entries ? { onEntry: print } : {}),
    });
    const seconds = (performance.now() - began) / 1_000;
    print(`seed ${seed}: ${simulation.hash().slice(0, 16)}, ${simulation.entries()} entries, ${seconds.toFixed(1)} s`);
    print(`  answers: ${shown(answersOf(history))}`);
    print(`  faults: ${shown(simulation.faults.counts())}`);
    print(`  reached: ${shown(simulation.marks.counts())}`);
    for (const { rule, text } of findings) print(`  FINDING ${rule}: ${text}`);
    if (findings.length > 0) process.exitCode = 1;
  } catch (error) {
    print(`seed ${seed} failed: ${(error as Error).stack ?? String(error)}`);
    print(`  cause: ${((error as Error).cause as Error | undefined)?.stack ?? 'none'}`);
    process.exitCode = 1;
  }
}

async function runApart(seed: number): Promise<void> {
  const program = [...process.execArgv, fileURLToPath(import.meta.url), '--seed', String(seed)];
  const run = promisify(execFile)(process.execPath, [...program, '--minutes', values.minutes], {
    maxBuffer: MAX_OUTPUT,
  });
  const { stdout, stderr } = await run.catch((error: unknown) => {
    process.exitCode = 1;
    return error as Awaited<typeof run>;
  });
  print(stdout + stderr);
}

const count = Number(values.seeds);
if (count === 1) await runSeed(Number.isNaN(Number(values.seed)) ? values.seed : Number(values.seed));
else
  await inParallel(
    Array.from({ length: count }, (_, n) => Number(values.seed) + n),
    availableParallelism(),
    runApart,
  );
