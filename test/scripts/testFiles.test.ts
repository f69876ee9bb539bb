import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

/** What of the script is tested. */
interface TestFiles {
  runTestFiles(
    files: readonly string[],
    env: NodeJS.ProcessEnv,
    mapped: boolean,
    limits: { readonly silentMs: number; readonly fileMs: number },
  ): Promise<readonly { passed: number; failed: number; skipped: number; trouble: string[] }[]>;
}

const test = suite('how test files are run');
const { runTestFiles } = (await import(new URL('../../../scripts/testFiles.mjs', import.meta.url).href)) as TestFiles;

const dir = mkdtempSync(join(tmpdir(), 'gift-test-files-'));
test.after(() => rmSync(dir, { recursive: true }));

const PATIENT = { silentMs: 100_000, fileMs: 100_000 };

const run = async (
  scripts: readonly string[],
  limits = PATIENT,
): Promise<readonly (readonly [passed: number, failed: number, trouble: string[]])[]> => {
  const files = scripts.map((script) => {
    const file = join(dir, `${crypto.randomUUID()}.mjs`);
    writeFileSync(file, `import { suite } from ${JSON.stringify(import.meta.resolve('uvu'))}; ${script}`);
    return file;
  });
  const results = await runTestFiles(files, process.env, false, limits);
  return results.map(({ passed, failed, trouble }) => [passed, failed, trouble]);
};

/** A file with one test for each body. */
const holding = (...bodies: readonly string[]): string =>
  `const test = suite('made up'); ${bodies.map((body, at) => `test('${at}', async () => { ${body} });`).join(' ')} test.run();`;
const PASSES = holding('', '', '');
/** A dot every 200 ms. */
const DOTS = 'setInterval(() => process.stdout.write("."), 200)';
const waits = (ms: number): string => `await new Promise((resolve) => setTimeout(resolve, ${ms}));`;

test('a file whose tests end one by one may take long', async () => {
  const script = holding(`const dots = ${DOTS}; ${waits(6_000)} clearInterval(dots);`);
  assert.equal(await run([script], { silentMs: 5_000, fileMs: 100_000 }), [[1, 0, []]]);
});

test('one that says nothing any more is killed', async () => {
  const script = holding(waits(60_000));
  assert.equal(await run([script], { silentMs: 2_000, fileMs: 100_000 }), [[0, 1, ['killed: said nothing for 2 s']]]);
});

test('one that never ends is killed, whatever it says', async () => {
  const script = holding(`${DOTS}; ${waits(60_000)}`);
  assert.equal(await run([script], { silentMs: 100_000, fileMs: 2_000 }), [[0, 1, ['killed: did not end within 2 s']]]);
});

test('each file of a process has its own result', async () => {
  assert.equal(await run([PASSES, holding('', 'throw new Error("no")'), 'export {};', PASSES]), [
    [3, 0, []],
    [1, 1, []],
    [0, 1, ['ran no test']],
    [3, 0, []],
  ]);
});

test('what ends the process, or leaves it running, has failed all that it may have been', async () => {
  const died = ['ended before it reported (exit code 7)'];
  assert.equal(await run([PASSES, holding('process.exit(7)'), PASSES]), [
    [3, 1, died],
    [0, 1, died],
    [0, 1, died],
  ]);
  const open = ['killed: still running 8 s after its results (something was left open)'];
  assert.equal(await run([`${PASSES} setInterval(() => undefined, 1_000);`, PASSES]), [
    [3, 1, open],
    [3, 1, open],
  ]);
});

test('a file whose engine is missing is skipped, and has not failed', async () => {
  const lacking = { ...process.env, TEST_MONGODB_SERVER: '/nowhere', TEST_MONGODB_URL: '' };
  const files = ['mongodb/silence', 'mongodb/indexes', 'mongodb/readStore'].map((name) =>
    fileURLToPath(new URL(`../adapters/${name}.test.js`, import.meta.url)),
  );
  for (const { passed, failed, skipped, trouble } of await runTestFiles(files, lacking, false, PATIENT))
    assert.equal([passed, failed, skipped > 0, trouble], [0, 0, true, []]);
});

test.run();
