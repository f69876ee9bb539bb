/**
 * Runs the service under one seed or several, and says what happened:
 * `npm run simulate -- --seed 7 [--seeds 20] [--minutes 5] [--shrink] [--log] [--entries]`. It exits with 1 where a seed has a
 * finding, and where no seed of many meets a state that they should reach (`knownMarks.ts`).
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { missingMarks } from './knownMarks.js';
import { runSeeds } from './manySeeds.js';
import { tellShrunk } from './shrunkRun.js';
import { type Counts, reportOf, type SeedReport, sumOf } from './seedReport.js';

const { values } = parseArgs({
  options: {
    /** The first seed; `fresh`: one drawn at random. */
    seed: { type: 'string', default: '1' },
    /** Number of seeds, each one greater than the one before. */
    seeds: { type: 'string', default: '1' },
    /** Virtual minutes in which clients act. */
    minutes: { type: 'string', default: '5' },
    /** Seeds that run at once. */
    processes: { type: 'string', default: String(availableParallelism()) },
    /** Cuts the run down to what its first finding needs. */
    shrink: { type: 'boolean', default: false },
    /** Prints the service's log. */
    log: { type: 'boolean', default: false },
    /** Prints each entry. */
    entries: { type: 'boolean', default: false },
  },
});

const FRESH_SEEDS = 1e9;
const HOUR_MS = 3_600_000;
const forMs = Number(values.minutes) * 60_000;
const seed = values.seed === 'fresh' ? Math.floor(Math.random() * FRESH_SEEDS) : values.seed;

const print = (line: string): void => void process.stdout.write(`${line.trimEnd()}\n`);
const shown = (counts: Counts): string =>
  Object.entries(counts)
    .map(([name, count]) => `${name}: ${count}`)
    .join(', ');

function printFindings({ seed: of, findings }: SeedReport): void {
  for (const { rule, text } of findings) print(`  FINDING ${rule}: ${text}`);
  if (findings.length === 0) return;
  print(`  again: npm run simulate -- --seed ${of} --minutes ${values.minutes}`);
  process.exitCode = 1;
}

async function runOne(): Promise<void> {
  const began = performance.now();
  const number = Number.isNaN(Number(seed)) ? seed : Number(seed);
  const report = await reportOf({
    seed: number,
    forMs,
    ...(values.log ? { onLine: print } : {}),
    ...(values.entries ? { onEntry: print } : {}),
  });
  const seconds = (performance.now() - began) / 1_000;
  print(`seed ${number}: ${report.hash.slice(0, 16)}, ${report.entries} entries, ${seconds.toFixed(1)} s`);
  print(`  answers: ${shown(report.answers)}`);
  print(`  faults: ${shown(report.faults)}`);
  print(`  reached: ${shown(report.marks)}`);
  printFindings(report);
}

async function runMany(count: number): Promise<void> {
  const began = performance.now();
  const first = Number(seed);
  const reports: SeedReport[] = [];
  print(`${count} seeds from ${first}, clients act for ${values.minutes} virtual minutes in each`);
  await runSeeds(
    Array.from({ length: count }, (_, n) => first + n),
    { forMs, processes: Number(values.processes) },
    (report) => {
      reports.push(report);
      if (report.findings.length > 0) print(`seed ${report.seed}:`);
      printFindings(report);
    },
  );
  const seconds = (performance.now() - began) / 1_000;
  const hours = reports.reduce((sum, { busyMs }) => sum + busyMs, 0) / HOUR_MS;
  const found = reports.filter(({ findings }) => findings.length > 0).length;
  const marks = sumOf(reports.map((one) => one.marks));
  print(`faults: ${shown(sumOf(reports.map((one) => one.faults)))}`);
  print(`reached: ${shown(marks)}`);
  for (const name of missingMarks(marks, count)) {
    print(`NEVER REACHED by any of ${count} seeds: ${name}`);
    process.exitCode = 1;
  }
  print(
    `${count} seeds from ${first}: ${found} with findings; ${hours.toFixed(1)} virtual hours in ${seconds.toFixed(0)} s`,
  );
}

const count = Number(values.seeds);
if (values.shrink) for (const line of await tellShrunk(seed, forMs)) print(line);
else await (count === 1 ? runOne() : runMany(count));
