/**
 * Runs compiled test files, or seeds of the simulation, against mutants: `node mutationTests.mjs FILE…` or `seed:N…`, a
 * child of mutation.mjs. All mutants are in the code, each behind a switch of Stryker's instrumenter. `{mutant, files}`
 * runs these with that mutant on, until one fails, and is answered by `{mutant, killed}`; `mutant: null` runs them
 * without any, and answers `{covered: {[file]: ids}, static: ids, ms: {[file]: number}}`, or with the one that fails.
 * MUTANT: is on before the files are loaded.
 */
globalThis.UVU_DEFER = 1;
const switches = (globalThis.__stryker__ = { activeMutant: process.env.MUTANT });
await import('uvu');

/** Hits of one mutant after which it is taken for an endless loop. */
const HITS = 1_000_000;
/** Virtual ms in which the clients of a seed act. */
const ACTING_MS = 6_000;
/** Entries of a seed's run after which it is taken for endless; without a mutant it has some 30,000. */
const ENTRIES = 300_000;
/** Of each file and seed: whether it passes. */
const checks = new Map();

for (const name of process.argv.slice(2))
  checks.set(
    name,
    name.startsWith('seed:') ? await seedCheck(Number(name.slice('seed:'.length))) : await testsOf(name),
  );

async function testsOf(file) {
  globalThis.UVU_QUEUE.splice(0, Infinity, [null]);
  await import(file);
  const suites = globalThis.UVU_QUEUE[0].slice(1);
  return async () => {
    for (const run of suites) {
      const [errors, ran, , total] = await run();
      if (errors !== true || ran !== total) return false;
    }
    return true;
  };
}

async function seedCheck(seed) {
  const { reportOf } = await import('../dist/test/simulation/seedReport.js');
  return async () => {
    let entries = 0;
    const onEntry = () => {
      if (++entries > ENTRIES) throw new Error('the run does not end');
    };
    const { findings } = await reportOf({ seed, forMs: ACTING_MS, onEntry });
    return findings.length === 0;
  };
}

async function failing(files) {
  for (const file of files) if (!(await checks.get(file)())) return file;
  return undefined;
}

async function coverage(files) {
  switches.activeMutant = undefined;
  const ms = {};
  for (const file of files) {
    switches.currentTestId = file;
    const start = performance.now();
    if (!(await checks.get(file)())) return { failed: file };
    ms[file] = performance.now() - start;
  }
  switches.currentTestId = undefined;
  const { perTest = {}, static: early = {} } = switches.mutantCoverage ?? {};
  const covered = Object.fromEntries(Object.entries(perTest).map(([file, hits]) => [file, Object.keys(hits)]));
  return { covered, static: Object.keys(early), ms };
}

process.on('message', async ({ mutant, files }) => {
  if (mutant === null) return process.send(await coverage(files));
  Object.assign(switches, { activeMutant: mutant, hitCount: 0, hitLimit: HITS });
  process.send({ mutant, killed: (await failing(files)) !== undefined });
});
process.send('ready');
