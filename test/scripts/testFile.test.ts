import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';

/** What of the script is tested. */
interface TestFile {
  runTestFile(
    file: string,
    env: NodeJS.ProcessEnv,
    mapped: boolean,
    limits: { readonly silentMs: number; readonly fileMs: number },
  ): Promise<{ passed: number; failed: number; skipped: number; trouble: string[] }>;
}

const test = suite('how a test file is run');
const { runTestFile } = (await import(new URL('../../../scripts/testFile.mjs', import.meta.url).href)) as TestFile;

const dir = mkdtempSync(join(tmpdir(), 'gift-test-file-'));
test.after(() => rmSync(dir, { recursive: true }));

const run = async (
  script: string,
  limits: { readonly silentMs: number; readonly fileMs: number },
): Promise<readonly [passed: number, failed: number, trouble: string[]]> => {
  const file = join(dir, `${crypto.randomUUID()}.mjs`);
  writeFileSync(file, script);
  const { passed, failed, trouble } = await runTestFile(file, process.env, false, limits);
  return [passed, failed, trouble];
};

const REPORT = 'console.log("\\n  Total:     3\\n  Passed:    3\\n  Skipped:   0\\n  Duration:  1ms");';
/** A dot every 200 ms. */
const DOTS = 'const dots = setInterval(() => process.stdout.write("."), 200);';

test('a file whose tests end one by one may take long', async () => {
  const script = `${DOTS} setTimeout(() => { clearInterval(dots); ${REPORT} }, 12_000);`;
  assert.equal(await run(script, { silentMs: 10_000, fileMs: 100_000 }), [3, 0, []]);
});

test('one that says nothing any more is killed', async () => {
  assert.equal(await run('setInterval(() => undefined, 1_000);', { silentMs: 2_000, fileMs: 100_000 }), [
    0,
    1,
    ['killed: said nothing for 2 s'],
  ]);
});

test('one that never ends is killed, whatever it says', async () => {
  assert.equal(await run(DOTS, { silentMs: 100_000, fileMs: 2_000 }), [0, 1, ['killed: did not end within 2 s']]);
});

test('a file whose engine is missing is skipped, and has not failed', async () => {
  const lacking = { ...process.env, TEST_MONGODB_SERVER: '/nowhere', TEST_MONGODB_URL: '' };
  const limits = { silentMs: 100_000, fileMs: 100_000 };
  for (const name of ['mongodb/silence', 'mongodb/indexes', 'mongodb/readStore']) {
    const file = fileURLToPath(new URL(`../adapters/${name}.test.js`, import.meta.url));
    const { passed, failed, skipped, trouble } = await runTestFile(file, lacking, false, limits);
    assert.equal([passed, failed, skipped > 0, trouble], [0, 0, true, []], name);
  }
});

test.run();
