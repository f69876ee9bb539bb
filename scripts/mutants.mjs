/**
 * Back-testing of the simulation: `npm run mutants -- [--minutes 10] [--unmutated 10] [--virtual 1] [NAME…]`. Each
 * patch in test/simulation/mutants puts a fault back into a copy of the tree. Fresh seeds run there until the
 * simulation finds something, or for `--minutes`. Before that the tree without a fault runs for `--unmutated` minutes:
 * findings of a kind that it has, too, or that the same seed has there, do not count. `--virtual`: minutes in which the
 * clients of a run act. `--processes`: seeds at once, by default one for each processor. `--seed`: the first seed, by
 * default a new one. NAME: part of a patch's name.
 */
import { spawn, spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { parseArgs } from 'node:util';
import { build, root } from './build.mjs';
import { listMutants, PATCHES } from './mutantPatches.mjs';
import { compileInto, copyOfTree } from './treeCopy.mjs';

const { values, positionals: names } = parseArgs({
  allowPositionals: true,
  options: {
    /** Minutes for each mutant at most. */
    minutes: { type: 'string', default: '10' },
    /** Minutes for the tree without a fault; default: as for a mutant. */
    unmutated: { type: 'string' },
    /** Virtual minutes in which the clients of a run act. */
    virtual: { type: 'string', default: '1' },
    /** Seeds that run at once. */
    processes: { type: 'string', default: String(availableParallelism()) },
    /** The first seed. */
    seed: { type: 'string', default: String(Math.floor(Math.random() * 1e9)) },
  },
});
const MUTANT_MS = Number(values.minutes) * 60_000;
const UNMUTATED_MS = Number(values.unmutated ?? values.minutes) * 60_000;
const FIRST_SEED = Number(values.seed);
const PROCESSES = Number(values.processes);

/** @returns what is wrong; `undefined`: nothing */
function applied(copy, name, ...options) {
  const { status, stderr } = spawnSync('git', ['apply', ...options, join(root, PATCHES, name)], {
    cwd: copy,
    encoding: 'utf8',
  });
  return status === 0 ? undefined : stderr.trim();
}

/** Compiles the files of a copy that a patch changes. */
function compile(copy, { text }) {
  for (const [, file] of text.matchAll(/^\+\+\+ b\/(\S+)/gm))
    compileInto(copy, file, readFileSync(join(copy, file), 'utf8'));
}

/** A finding without its ids, numbers and times: what two findings of the same kind have in common. */
const kindOf = (line) =>
  line
    .replaceAll(/[\w-]*\d[\w-]*/g, '#')
    .replaceAll(/\s+/g, ' ')
    .slice(0, 160);

/** Processes that run seeds at present. */
const children = new Set();

/** Runs seeds from `first` on until the signal. @param note called with the seed and its findings' first lines */
async function runSeeds(copy, first, signal, note) {
  const program = ['--enable-source-maps', 'dist/test/simulation/search.js', String(first), values.virtual];
  const child = spawn(process.execPath, program, {
    cwd: copy,
    stdio: ['ignore', 'pipe', 'pipe'],
    signal,
    killSignal: 'SIGKILL',
  });
  children.add(child);
  let seed = first;
  let findings = [];
  let errors = '';
  createInterface({ input: child.stdout }).on('line', (line) => {
    if (line.startsWith('FINDING ')) findings.push(line.slice('FINDING '.length));
    if (!line.startsWith('SEED ')) return;
    note(seed++, findings);
    findings = [];
  });
  child.stderr.on('data', (data) => (errors = (errors + data).slice(-4_000)));
  const code = await new Promise((resolve) => {
    child.on('error', () => undefined);
    child.once('close', resolve);
  });
  children.delete(child);
  if (signal.aborted) return;
  // It ends by itself only where the service has brought it down.
  const died = errors.split('\n').find((line) => line.includes('Error')) ?? `exit code ${code}`;
  note(seed, [`the process died: ${died.trim()}`]);
}

/** Seeds between the first ones of two processes: more than one gets to. */
const APART = 100_000;

/**
 * Runs fresh seeds of a copy for `forMs` at most. The first finding that counts ends the search.
 * @param counts whether a finding counts, by its first line and its seed
 */
async function search(copy, forMs, counts, first = FIRST_SEED) {
  const started = performance.now();
  const over = new AbortController();
  const timer = setTimeout(() => over.abort(), forMs);
  let [seeds, found] = [0, undefined];
  const note = (seed, lines) => {
    if (over.signal.aborted) return;
    seeds++;
    const line = lines.find((one) => counts(one, seed));
    if (line === undefined) return;
    found = { seed, line };
    over.abort();
  };
  await Promise.all(Array.from({ length: PROCESSES }, (_, n) => runSeeds(copy, first + n * APART, over.signal, note)));
  clearTimeout(timer);
  return { found, seeds, seconds: Math.round((performance.now() - started) / 1_000) };
}

/** The findings of one seed of a copy. */
async function findingsOf(copy, first) {
  const over = new AbortController();
  let findings = [];
  await runSeeds(copy, first, over.signal, (seed, lines) => {
    if (seed === first) findings = lines;
    over.abort();
  });
  return findings;
}

/** Searches a mutant. A finding that the same seed has without the fault, too, does not count, nor do others like it. */
async function searchMutant(copy, clean, known) {
  const all = { found: undefined, seeds: 0, seconds: 0 };
  while (all.seconds * 1_000 < MUTANT_MS) {
    const counts = (line) => !known.has(kindOf(line));
    const { found, seeds, seconds } = await search(
      copy,
      MUTANT_MS - all.seconds * 1_000,
      counts,
      FIRST_SEED + all.seeds,
    );
    all.seeds += seeds;
    all.seconds += seconds;
    if (found === undefined) return all;
    const kind = kindOf(found.line);
    if (!(await findingsOf(clean, found.seed)).some((line) => kindOf(line) === kind)) return { ...all, found };
    console.log(`without a fault, seed ${found.seed} has the same kind of finding: ${found.line}`);
    known.add(kind);
  }
  return all;
}

async function main() {
  const mutants = listMutants(root).filter(({ name }) => names.length === 0 || names.some((one) => name.includes(one)));
  if (mutants.length === 0) throw new Error(`no mutant is called ${names.join(', ')}`);
  if (!build()) throw new Error('the tree does not compile');
  const [copy, clean] = [copyOfTree(), copyOfTree()];
  for (const signal of ['SIGINT', 'SIGTERM'])
    process.on(signal, () => {
      for (const child of children) child.kill('SIGKILL');
      process.exit(1);
    });

  const known = new Set();
  const unmutated = await search(clean, UNMUTATED_MS, (line, seed) => {
    if (!known.has(kindOf(line))) console.log(`without a fault, seed ${seed} has a finding: ${line}`);
    known.add(kindOf(line));
    return false;
  });
  console.log(`without a fault: ${unmutated.seeds} seeds from ${values.seed}, ${known.size} kinds of findings`);

  let found = 0;
  for (const mutant of mutants) {
    const { name } = mutant;
    const label = name.replace(/\.patch$/, '');
    const wrong = applied(copy, name);
    if (wrong !== undefined) {
      console.log(`${label}: not run: ${wrong}`);
      process.exitCode = 1;
    } else {
      compile(copy, mutant);
      const { seeds, seconds, found: finding } = await searchMutant(copy, clean, known);
      if (finding === undefined) console.log(`${label}: missed after ${seconds} s, ${seeds} seeds`);
      else {
        found++;
        console.log(`${label}: found after ${seconds} s by seed ${finding.seed}, one of ${seeds}: ${finding.line}`);
      }
    }
    if (wrong !== undefined) continue;
    const left = applied(copy, name, '--reverse');
    if (left !== undefined) throw new Error(`${name} can't be taken back: ${left}`);
    compile(copy, mutant);
  }
  console.log(`${found} of ${mutants.length} found`);
}

await main();
