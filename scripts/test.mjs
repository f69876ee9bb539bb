/**
 * `npm test`: compiles, then runs every test file, two at a time, each in a process of its own. `npm test -- NAME` runs those whose path
 * holds NAME (`projections`, `test/api/embed.test.ts`). `--coverage` (npm run coverage) measures them and fails below 95 % of lines or branches.
 * `--every-engine` runs those that start the service once more on each mix of engines (engineMixes.mjs). The last line is `N passed, N failed`, and `, N skipped` where some were.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { build, filesBelow, root } from './build.mjs';
import { withEachMix } from './engineMixes.mjs';
import { killAll, runTestFile } from './testFile.mjs';

/** How many files run side by side. */
const SIDE_BY_SIDE = 2;
/** Lowest coverage that passes, in percent. */
const LOWEST = 95;

process.chdir(root);
const coverage = process.argv.includes('--coverage');
const everyEngine = process.argv.includes('--every-engine');
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const rawCoverage = join(root, 'coverage', 'tmp');
const totals = { passed: 0, failed: 0, skipped: 0 };
const skippedNames = [];

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    killAll();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

/** The files asked for, in the order of their paths. */
function chosen() {
  const wanted = names.map((name) => name.replace(/^\.\//, '').replace(/^(dist\/)?test\//, '').replace(/\.[jt]s$/, ''));
  return filesBelow('dist/test')
    .filter((file) => file.endsWith('.test.js') && (wanted.length === 0 || wanted.some((name) => file.includes(name))))
    .sort();
}

function environment(more) {
  const env = { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0', ...more };
  if (coverage) env.NODE_V8_COVERAGE = rawCoverage;
  return env;
}

function tell(file, label, result) {
  const named = `${file.replace(/\.test\.js$/, '')}${label === '' ? '' : ` (${label})`}`;
  const counts = [`${result.passed} passed`];
  if (result.failed > 0) counts.push(`${result.failed} failed`);
  if (result.skipped > 0) counts.push(`${result.skipped} skipped`);
  const seconds = (result.ms / 1000).toFixed(1);
  console.log(`${result.failed > 0 ? 'FAIL' : 'ok  '} ${named}: ${counts.join(', ')} (${seconds} s)`);
  if (result.failed > 0 || names.length > 0) console.log(result.output.trimEnd());
  for (const trouble of result.trouble) console.log(`     ${named}: ${trouble}`);
  if (result.failed > 0) return;
  for (const name of result.names) skippedNames.push(`${named}: ${name}`);
  const unnamed = result.skipped - result.names.length;
  if (unnamed > 0) skippedNames.push(`${named}: ${unnamed} without a name`);
}

function count(result) {
  totals.passed += result.passed;
  totals.failed += result.failed;
  totals.skipped += result.skipped;
}

/** @param label what is special about this run, and @param more the environment that makes it so */
async function runAll(files, label = '', more = {}) {
  const waiting = [...files];
  const env = environment(more);
  const suspects = [];
  const alone = [];
  const failing = [];
  await Promise.all(
    Array.from({ length: SIDE_BY_SIDE }, async () => {
      for (let file = waiting.shift(); file !== undefined; file = waiting.shift()) {
        const result = await runTestFile(join('dist/test', file), env);
        if (result.failed > 0) suspects.push(file);
        else count(result);
        tell(file, label, result);
      }
    }),
  );
  // Some tests measure time or wait for processes: what failed while another file had its share of the machine is run again, alone. What fails twice has failed.
  for (const file of suspects) {
    console.log(`again, alone: ${file.replace(/\.test\.js$/, '')}`);
    const result = await runTestFile(join('dist/test', file), env);
    count(result);
    tell(file, label, result);
    (result.failed > 0 ? failing : alone).push(file);
  }
  const listed = (some) => some.map((file) => `  test/${file.replace(/\.js$/, '.ts')}${label === '' ? '' : ` (${label})`}`).join('\n');
  if (alone.length > 0) console.log(`\nPassed only alone:\n${listed(alone)}`);
  if (failing.length > 0) console.log(`\nFailing files:\n${listed(failing)}`);
}

/** A file that holds nothing but types compiles to nothing that could run. */
function withoutCode() {
  return filesBelow('dist/src').filter(
    (file) =>
      file.endsWith('.js') &&
      readFileSync(join('dist/src', file), 'utf8')
        .replace(/\/\*[^]*?\*\/|\/\/.*$/gm, '')
        .trim() === 'export {};',
  );
}

/** @returns whether enough was covered */
function reportCoverage() {
  const c8 = join(dirname(createRequire(import.meta.url).resolve('c8/package.json')), 'bin', 'c8.js');
  const options = ['report', '--temp-directory', rawCoverage, '--reporter', 'text', '--reporter', 'lcovonly', '--all', '--src', 'dist/src'];
  options.push('--include', 'dist/src/**/*.js', ...withoutCode().flatMap((file) => ['--exclude', `dist/src/${file}`]));
  // One file alone covers little: then the table is all that is asked for.
  if (names.length === 0) options.push('--check-coverage', '--lines', String(LOWEST), '--branches', String(LOWEST));
  const { status } = spawnSync(process.execPath, [c8, ...options], { stdio: 'inherit' });
  if (status !== 0) console.log(`Coverage of src is below ${LOWEST} % of lines or branches.`);
  return status === 0;
}

let good = build();
if (good) {
  const files = chosen();
  if (files.length === 0) {
    console.log(`No test file matches ${names.join(', ')}.`);
    totals.failed = 1;
  }
  if (coverage) rmSync(rawCoverage, { recursive: true, force: true });
  await runAll(files);
  if (everyEngine) {
    await withEachMix(
      files,
      async (own, label, more) => {
        console.log(`--- the service's tests on ${label}`);
        await runAll(own, label, more);
      },
      (own, label, reason) => {
        totals.skipped += own.length;
        for (const file of own) skippedNames.push(`${file.replace(/\.test\.js$/, '')} (${label}): ${reason}`);
      },
    );
  }
  if (coverage) good = reportCoverage();
} else {
  console.log('The sources do not compile: no test was run.');
  totals.failed = 1;
}
if (skippedNames.length > 0) console.log(`\nSkipped:\n${skippedNames.map((name) => `  ${name}`).join('\n')}`);
console.log(`\n${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`);
if (totals.failed > 0 || !good) process.exitCode = 1;
