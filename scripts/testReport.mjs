/** The last lines of `npm test`. */

const listed = (title, names) =>
  names.length === 0 ? '' : `\n${title}:\n${names.map((name) => `  ${name}`).join('\n')}\n`;

/** Of each failing file so many lines are shown again: a long run's output is often cut in the middle. */
const MOST_LINES = 25;

/** What a file printed of its failures, from the first one. */
function failuresIn(output) {
  const lines = output.split('\n');
  const first = Math.max(
    0,
    lines.findIndex((line) => line.trimStart().startsWith('FAIL ')),
  );
  return lines
    .slice(first, first + MOST_LINES)
    .join('\n')
    .trimEnd();
}

/**
 * The end of a run's output. Its last line is `N passed, N failed`, and `, N skipped` where some were: other programs
 * read it.
 * @param totals counts of tests: `passed`, `failed`, `skipped`
 * @param failing files: `name` and `output`
 * @param skipped names of tests, with the reason
 */
export function lastLines(totals, { failing, skipped }) {
  const counts = `${totals.passed} passed, ${totals.failed} failed${totals.skipped > 0 ? `, ${totals.skipped} skipped` : ''}`;
  const again = failing.map(({ name, output }) => `\n--- ${name}\n${failuresIn(output)}\n`).join('');
  const names = failing.map(({ name }) => name);
  return `${listed('Skipped', skipped)}${again}${listed('Failing files', names)}\n${counts}`;
}
