/**
 * Runs compiled test files against mutants: `node mutationTests.mjs FILE…`, a child of mutation.mjs. All mutants are in
 * the code, each behind a switch of Stryker's instrumenter. `{run: {mutant, files}}` runs these files with that mutant
 * on, until a test fails, and is answered by `{mutant, killed}`; `mutant: null` runs them without any, and answers
 * `{covered: {[file]: ids}, static: ids, ms: {[file]: number}}`, or with the file that fails. MUTANT: is on before the
 * files are loaded.
 */
globalThis.UVU_DEFER = 1;
const switches = (globalThis.__stryker__ = { activeMutant: process.env.MUTANT });
await import('uvu');

/** Hits of one mutant after which it is taken for an endless loop. */
const HITS = 1_000_000;
const suites = new Map();

for (const file of process.argv.slice(2)) {
  globalThis.UVU_QUEUE.splice(0, Infinity, [null]);
  await import(file);
  suites.set(file, globalThis.UVU_QUEUE[0].slice(1));
}

async function passes(file) {
  for (const run of suites.get(file)) {
    const [errors, ran, , total] = await run();
    if (errors !== true || ran !== total) return false;
  }
  return true;
}

async function failing(files) {
  for (const file of files) if (!(await passes(file))) return file;
  return undefined;
}

async function coverage(files) {
  switches.activeMutant = undefined;
  const ms = {};
  for (const file of files) {
    switches.currentTestId = file;
    const start = performance.now();
    if (!(await passes(file))) return { failed: file };
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
