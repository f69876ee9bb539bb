/**
 * Mutation testing: `npm run mutation -- [--tests test/domain]… [--seeds 5] [FILE or folder of src]…`, by default
 * src/domain by test/domain. Stryker's instrumenter changes one operator, condition, text or call at a time; a mutant
 * that no test notices is listed, and makes the exit code 1, unless test/mutation/explained.txt says why none can: a
 * line `FILE MUTATOR: ORIGINAL → REPLACEMENT # reason`, as it is listed. Tests that start processes or threads notice
 * nothing in these. With `--seeds N`, seeds 1 to N of the simulation then run against what the tests let live. With
 * `--sample M` M mutants are drawn, the same ones in each run, others with another `--draw TEXT`: tests and seeds run
 * against each of them, so that also the share is known that seeds alone kill. First run
 * `npm ci --prefix test/mutation`.
 */
import { fork } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { build, root } from './build.mjs';
import { filesBelow } from './filesBelow.mjs';
import { compileInto, copyOfTree } from './treeCopy.mjs';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    tests: { type: 'string', multiple: true },
    seeds: { type: 'string', default: '0' },
    sample: { type: 'string' },
    draw: { type: 'string', default: '' },
  },
});
const SOURCES = positionals.length > 0 ? positionals : ['src/domain'];
const TESTS = values.tests ?? SOURCES.map((one) => one.replace(/^src/, 'test'));
const SEEDS = Array.from({ length: Number(values.seeds) }, (_, n) => `seed:${n + 1}`);

/** Longest time in ms that a process may take to load the tests, or to run them without a mutant. */
const SILENT_MS = 300_000;
/** Longest time in ms that tests may take with a mutant on, by the time that they take without one. */
const patience = (ms) => 2_000 + 5 * ms;
/** The same of seeds: a run that does not end is ended by its number of entries, unless an entry does not end. */
const seedPatience = (ms) => 60_000 + 20 * ms;
/** Texts are seldom behaviour: messages have tests of their own. */
const LEFT_OUT = ['StringLiteral'];

const filesOf = (name, ending) =>
  name.endsWith('.ts')
    ? [name]
    : filesBelow(join(root, name))
        .filter((file) => file.endsWith(ending))
        .map((file) => join(name, file));

/** Puts all mutants into a copy's compiled sources. @returns the mutants */
async function instrument(copy) {
  const { resolve } = createRequire(join(root, 'test/mutation/package.json'));
  const { Instrumenter } = await import(pathToFileURL(resolve('@stryker-mutator/instrumenter')).href);
  const quiet = { debug() {}, info() {}, isDebugEnabled: () => false };
  const files = SOURCES.flatMap((name) => filesOf(name, '.ts')).map((name) => ({
    name,
    mutate: true,
    content: readFileSync(join(root, name), 'utf8'),
  }));
  const options = { plugins: null, excludedMutations: LEFT_OUT, ignorers: [], noHeader: false };
  const made = await new Instrumenter(quiet).instrument(files, options);
  for (const { name, content } of made.files) compileInto(copy, name, content);
  return made.mutants.filter(({ statusReason }) => statusReason === undefined);
}

/** A process with the test files loaded. `ask` gives `undefined` where it died or said nothing for too long. */
async function startTests(copy, files, mutant) {
  const child = fork(join(copy, 'scripts/mutationTests.mjs'), files, {
    cwd: copy,
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
    env: { ...process.env, ...(mutant === undefined ? {} : { MUTANT: mutant }) },
  });
  const next = (withinMs) =>
    new Promise((resolve) => {
      const timer = setTimeout(() => child.kill('SIGKILL'), withinMs);
      const over = (message) => {
        clearTimeout(timer);
        child.off('message', over).off('exit', ended);
        resolve(message);
      };
      const ended = () => over(undefined);
      child.once('message', over).once('exit', ended);
    });
  const ready = await next(SILENT_MS);
  return {
    alive: () => ready === 'ready' && child.exitCode === null && child.signalCode === null,
    ask(order, withinMs = SILENT_MS) {
      const answer = next(withinMs);
      child.send(order);
      return answer;
    },
    end: () => child.kill('SIGKILL'),
  };
}

async function coverageOf(copy, files) {
  const tests = await startTests(copy, files);
  const found = tests.alive() ? await tests.ask({ mutant: null, files }) : undefined;
  tests.end();
  if (found?.covered === undefined) throw new Error(`the tests fail without a mutant: ${found?.failed ?? 'they died'}`);
  return found;
}

/** Whether one of these files fails with the mutant on, in a process that it has to itself from its start. */
async function killedAlone(copy, { id, tests: files, withinMs }) {
  const tests = await startTests(copy, files, id);
  const killed = !tests.alive() || ((await tests.ask({ mutant: id, files }, withinMs))?.killed ?? true);
  tests.end();
  return killed;
}

/**
 * Runs mutants, by these tests of each. A mutant that lives runs again alone, since another may have
 * left behind what hides it, as in a cache; so does each one where a test fails without a mutant after all ran.
 * @returns those that live
 */
async function survivorsOf(copy, mutants, files) {
  const reasons = explained();
  const shared = new Set();
  const all = [...new Set(mutants.flatMap(({ tests }) => tests))];
  let running;
  for (const { id, tests, atLoad, withinMs } of mutants) {
    if (tests.length === 0 || atLoad) continue;
    if (running?.alive() !== true) running = await startTests(copy, files);
    if (!running.alive() || ((await running.ask({ mutant: id, files: tests }, withinMs))?.killed ?? true))
      shared.add(id);
  }
  const clean = running?.alive() !== true || (await running.ask({ mutant: null, files: all }))?.covered !== undefined;
  running?.end();
  const alive = [];
  for (const mutant of mutants) {
    if (clean && shared.has(mutant.id)) continue;
    // Each seed opens a world of its own, in which nothing of another one hides a mutant.
    const hopeless =
      mutant.tests.length === 0 || reasons.has(describe(mutant)) || (files === SEEDS && !mutant.atLoad && clean);
    if (hopeless || !(await killedAlone(copy, mutant))) alive.push(mutant);
  }
  return alive;
}

/** @returns the mutants that none of these test files or seeds kills */
async function survivors(copy, mutants, files) {
  const { covered, static: early, ms } = await coverageOf(copy, files);
  const coveredBy = new Map();
  for (const [file, ids] of Object.entries(covered))
    for (const id of ids) coveredBy.set(id, [...(coveredBy.get(id) ?? []), file]);
  // What runs while files are loaded runs once: such a mutant always runs alone.
  const atLoad = new Set(early);
  const all = mutants.map((one) => {
    const tests = coveredBy.get(one.id) ?? (atLoad.has(one.id) ? files : []);
    const withinMs = (files === SEEDS ? seedPatience : patience)(tests.reduce((sum, file) => sum + ms[file], 0));
    return { ...one, tests, atLoad: atLoad.has(one.id), withinMs };
  });
  // Tests of other files may leave something behind; each seed opens a world of its own.
  const names = files === SEEDS ? [undefined] : new Set(all.map(({ fileName }) => fileName));
  const alive = [];
  for (const name of names) {
    const some = name === undefined ? all : all.filter(({ fileName }) => fileName === name);
    alive.push(...(await survivorsOf(copy, some, files)));
  }
  return alive;
}

const oneLine = (text) => text.replaceAll(/\s+/g, ' ').slice(0, 80);

/** Reasons of survivors that no test can notice, by what is listed of them. */
function explained() {
  const lines = readFileSync(join(root, 'test/mutation/explained.txt'), 'utf8').split('\n').filter(Boolean);
  return new Map(lines.map((line) => line.split(' # ')));
}

function describe({ fileName, location: { start }, mutatorName, replacement }) {
  const lines = readFileSync(join(root, fileName), 'utf8').split('\n');
  const rest = lines[start.line].slice(start.column);
  // Blocks begin alike: what is in them tells them apart.
  const original = oneLine(rest === '{' ? `${rest} ${lines.slice(start.line + 1).join(' ')}` : rest);
  return `${fileName} ${mutatorName}: ${original} → ${oneLine(replacement)}`;
}

/** So many of the mutants, the same ones in each run with the same `--draw`. */
function sampleOf(mutants, size) {
  const order = (mutant) =>
    createHash('sha256')
      .update(`${values.draw}${describe(mutant)} ${mutant.location.start.line} ${mutant.location.start.column}`)
      .digest('hex');
  const drawn = mutants
    .map((mutant) => ({ mutant, at: order(mutant) }))
    .sort((one, other) => (one.at < other.at ? -1 : 1));
  return drawn.slice(0, size).map(({ mutant }) => mutant);
}

const percent = (killed, all) => `${killed} of ${all} killed, ${((100 * killed) / all).toFixed(1)} %`;

function list(mutants) {
  for (const mutant of mutants)
    console.log(
      `${describe(mutant)} (line ${mutant.location.start.line + 1}${mutant.tests.length > 0 ? '' : ', no test runs it'})`,
    );
}

/** Prints the survivors that nothing explains, and the shares that were killed. */
async function report(copy, mutants, sampled) {
  const compiled = TESTS.flatMap((name) => filesOf(name, '.test.ts')).map((name) =>
    join(copy, 'dist', name.replace(/\.ts$/, '.js')),
  );
  const alive = await survivors(copy, mutants, compiled);
  const reasons = explained();
  const unexplained = alive.filter((mutant) => !reasons.has(describe(mutant)));
  console.log(`by tests: ${percent(mutants.length - alive.length, mutants.length)}`);
  if (SEEDS.length === 0) return { unexplained, alive };
  const against = sampled ? mutants : unexplained;
  const lived = await survivors(copy, against, SEEDS);
  console.log(`by ${SEEDS.length} seeds: ${percent(against.length - lived.length, against.length)}`);
  const tried = new Set(against.map(({ id }) => id));
  const lives = new Set(lived.map(({ id }) => id));
  const isLeft = ({ id }) => !tried.has(id) || lives.has(id);
  return { unexplained: unexplained.filter(isLeft), alive: alive.filter(isLeft) };
}

async function main() {
  if (!build()) throw new Error('the tree does not compile');
  const copy = copyOfTree();
  const all = await instrument(copy);
  const mutants = values.sample === undefined ? all : sampleOf(all, Number(values.sample));
  const { unexplained, alive } = await report(copy, mutants, values.sample !== undefined);
  list(unexplained);
  const killed = percent(mutants.length - alive.length, mutants.length);
  console.log(`${killed}; ${alive.length - unexplained.length} explained; ${all.length} mutants in all`);
  if (unexplained.length > 0) process.exitCode = 1;
}

await main();
