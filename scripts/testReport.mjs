/** The last lines of `npm test`. */

const listed = (title, names) =>
  names.length === 0 ? '' : `\n${title}:\n${names.map((name) => `  ${name}`).join('\n')}\n`;

/**
 * The end of a run's output. Its last line is `N passed, N failed`, and `, N skipped` where some were: other programs
 * read it.
 * @param totals counts of tests: `passed`, `failed`, `skipped`
 * @param failing files
 * @param skipped names of tests, with the reason
 */
export function lastLines(totals, { failing, skipped }) {
  const counts = `${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`;
  return `${listed('Skipped', skipped)}${listed('Failing files', failing)}\n${counts}`;
}
