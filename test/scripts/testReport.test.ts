import { suite } from 'uvu';
import * as assert from 'uvu/assert';

/** What of the script is tested. */
interface TestReport {
  lastLines(
    totals: { passed: number; failed: number; skipped: number },
    named: { alone: readonly string[]; failing: readonly string[]; skipped: readonly string[] },
  ): string;
}

const test = suite('what npm test says last');
const { lastLines } = (await import(new URL('../../../scripts/testReport.mjs', import.meta.url).href)) as TestReport;

test('a file that passed only when it was run again is named right above the totals', () => {
  const lines = lastLines(
    { passed: 9, failed: 1, skipped: 0 },
    { alone: ['test/a.test.ts'], failing: ['test/b.test.ts'], skipped: [] },
  ).split('\n');
  assert.equal(lines, [
    '',
    'Failing files:',
    '  test/b.test.ts',
    '',
    '1 file failed first and passed only alone, counted as passed:',
    '  test/a.test.ts',
    '',
    '9 passed, 1 failed',
  ]);
});

test('the very last line is the totals and nothing else', () => {
  const last = (skipped: number, alone: readonly string[]): string | undefined =>
    lastLines({ passed: 2, failed: 0, skipped }, { alone, failing: [], skipped: ['x: no server'] })
      .split('\n')
      .at(-1);
  assert.equal(
    [last(0, []), last(1, []), last(0, ['test/a.test.ts', 'test/b.test.ts'])],
    ['2 passed, 0 failed', '2 passed, 0 failed, 1 skipped', '2 passed, 0 failed'],
  );
});

test.run();
