import { suite } from 'uvu';
import * as assert from 'uvu/assert';

/** What of the script is tested. */
interface TestReport {
  lastLines(
    totals: { passed: number; failed: number; skipped: number },
    named: {
      failing: readonly { readonly name: string; readonly output: string }[];
      skipped: readonly string[];
    },
  ): string;
}

const test = suite('what npm test says last');
const { lastLines } = (await import(new URL('../../../scripts/testReport.mjs', import.meta.url).href)) as TestReport;

test('shows failures again, and names the files that failed right above the totals', () => {
  const output = ` api  • ✘\n\n   FAIL  api  "a gift"\n${'    at line\n'.repeat(40)}`;
  const lines = lastLines(
    { passed: 9, failed: 1, skipped: 1 },
    { failing: [{ name: 'test/b.test.ts', output }], skipped: ['x: no server'] },
  ).split('\n');
  assert.equal(lines, [
    '',
    'Skipped:',
    '  x: no server',
    '',
    '--- test/b.test.ts',
    '   FAIL  api  "a gift"',
    ...Array.from({ length: 24 }, () => '    at line'),
    '',
    'Failing files:',
    '  test/b.test.ts',
    '',
    '9 passed, 1 failed, 1 skipped',
  ]);
});

test('ends with the totals and nothing else', () => {
  const last = (skipped: number): string | undefined =>
    lastLines({ passed: 2, failed: 0, skipped }, { failing: [], skipped: ['x: no server'] })
      .split('\n')
      .at(-1);
  assert.equal([last(0), last(1)], ['2 passed, 0 failed', '2 passed, 0 failed, 1 skipped']);
});

test.run();
