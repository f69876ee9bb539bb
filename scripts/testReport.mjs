/** The last lines of `npm test`. */

const listed = (title, names) =>
  names.length === 0 ? '' : `\n${title}:\n${names.map((name) => `  ${name}`).join('\n')}\n`;

/**
 * The end of a run's output. Its last line is `N passed, N failed`, and `, N skipped` where some were: other programs
 * read it.
 * @param totals counts of tests: `passed`, `failed`, `skipped`
 * @param alone files that failed beside others and passed when run again: they count as passed, but must be looked at
 * @param failing files that failed both times
 * @param skipped names of tests, with the reason
 */
export function lastLines(totals, { alone, failing, skipped }) {
  const counts = `${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`;
  const again = `${alone.length} ${alone.length === 1 ? 'file' : 'files'} failed first and passed only alone, counted as passed`;
  return `${listed('Skipped', skipped)}${listed('Failing files', failing)}${listed(again, alone)}\n${counts}`;
}
