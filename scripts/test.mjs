/**
 * `npm test`: compiles, then runs every test file, in a few processes at a time (testBatches.mjs). `npm test -- NAME`
 * runs those whose path holds NAME (`projections`, `test/api/gifts/gifts.test.ts`). `--coverage` (npm run coverage)
 * measures them and fails below 95 % of lines or branches. `--every-engine` runs those that start the service on
 * servers too (engineMixes.mjs); with names, or TEST_MIXES=whole, the HTTP tests on every mix of engines. The last line
 * is `N passed, N failed`, and `, N skipped` where some were; above it stand the files that failed. Nothing runs twice.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { build, root } from './build.mjs';
import { openMixes } from './engineMixes.mjs';
import { byLength } from './byLength.mjs';
import { filesBelow } from './filesBelow.mjs';
import { killAll, runTestFiles } from './testFiles.mjs';
import { inBatches } from './testBatches.mjs';
import { answeringEngines } from './testEngines.mjs';
import { lastLines } from './testReport.mjs';

/** Processes at once: they compute most of the time, and now and then wait. More would be late for leases and pauses. */
const SIDE_BY_SIDE = Number(process.env.TEST_SIDE_BY_SIDE ?? availableParallelism() + 1);
/** Lowest coverage that passes, in percent. */
const LOWEST = 95;

process.chdir(root);
const coverage = process.argv.includes('--coverage');
const everyEngine = process.argv.includes('--every-engine');
const names = process.argv.slice(2).filter((argument) => !argument.startsWith('--'));
const rawCoverage = join(root, 'coverage', 'tmp');
const totals = { passed: 0, failed: 0, skipped: 0 };
const skippedNames = [];
const failing = [];
/** Servers that run beside the tests. */
let mixes;

for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    killAll();
    void mixes?.close();
    process.exit(signal === 'SIGINT' ? 130 : 143);
  });
}

/** The files asked for, by path. */
function chosen() {
  const wanted = names.map((name) =>
    name
      .replace(/^\.\//, '')
      .replace(/^(dist\/)?test\//, '')
      .replace(/\.[jt]s$/, ''),
  );
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

/** @param runs each a file, the label of its run, and its environment */
async function runAll(runs) {
  const waiting = byLength(inBatches(runs));
  await Promise.all(
    Array.from({ length: SIDE_BY_SIDE }, async (_, lane) => {
      // One lane starts with the longest, the others with the shortest: so few long files run side by side, and none is
      // left for the end.
      const next = () => (lane === 0 ? waiting.shift() : waiting.pop());
      for (let batch = next(); batch !== undefined; batch = next()) {
        const files = batch.map(({ file }) => join('dist/test', file));
        const results = await runTestFiles(files, environment(batch[0].env), names.length > 0);
        for (const [at, { file, label }] of batch.entries()) {
          count(results[at]);
          tell(file, label, results[at]);
          if (results[at].failed > 0)
            failing.push({
              name: `test/${file.replace(/\.js$/, '.ts')}${label === '' ? '' : ` (${label})`}`,
              output: [results[at].output, ...results[at].trouble].join('\n'),
            });
        }
      }
    }),
  );
}

/** A file of types alone compiles to no code. */
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
  const options = [
    'report',
    '--temp-directory',
    rawCoverage,
    '--reporter',
    'text',
    '--reporter',
    'lcovonly',
    '--all',
    '--src',
    'dist/src',
  ];
  options.push('--include', 'dist/src/**/*.js', ...withoutCode().flatMap((file) => ['--exclude', `dist/src/${file}`]));
  // One file covers little: only the table is wanted then.
  if (names.length === 0) options.push('--check-coverage', '--lines', String(LOWEST), '--branches', String(LOWEST));
  const { status } = spawnSync(process.execPath, [c8, ...options], { stdio: 'inherit' });
  if (status !== 0) console.log(`Coverage of src is below ${LOWEST} % of lines or branches.`);
  return status === 0;
}

let good = build({ apart: coverage });
if (good) {
  const files = chosen();
  if (files.length === 0) {
    console.log(`No test file matches ${names.join(', ')}.`);
    totals.failed = 1;
  }
  if (coverage) rmSync(rawCoverage, { recursive: true, force: true });
  const runs = files.map((file) => ({ file, label: '', env: {} }));
  if (everyEngine) {
    const found = await answeringEngines();
    for (const [setting, url] of Object.entries(found)) console.log(`found: ${setting}=${url} (npm run engines)`);
    Object.assign(process.env, found);
    mixes = await openMixes(files, names.length > 0 || process.env.TEST_MIXES === 'whole');
    try {
      await runAll([...runs, ...mixes.runs]);
    } finally {
      await mixes.close();
    }
    totals.skipped += mixes.skipped.length;
    for (const { file, label, reason } of mixes.skipped)
      skippedNames.push(`${file.replace(/\.test\.js$/, '')} (${label}): ${reason}`);
  } else await runAll(runs);
  if (coverage) good = reportCoverage();
} else {
  console.log('The sources could not be built: no test was run.');
  totals.failed = 1;
}
console.log(lastLines(totals, { failing, skipped: skippedNames }));
if (totals.failed > 0 || !good) process.exitCode = 1;
