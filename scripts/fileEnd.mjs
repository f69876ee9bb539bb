/** The line between the outputs of two test files of one process. */

/** Record separator: no test writes it. */
const MARK = '\u001e';
const LINE = new RegExp(`\n${MARK}(.+)\n`);

/** @param end `code` (the exit code of a process with this file alone) and `ms` */
export const fileEnd = (end) => `\n${MARK}${JSON.stringify(end)}\n`;

export const countFileEnds = (chunk) => chunk.split(MARK).length - 1;

/** @returns of each file that has ended its output, code and ms; and of the one that has not, the output */
export function byFile(output) {
  const parts = output.split(LINE);
  const ended = [];
  for (let at = 0; at + 1 < parts.length; at += 2) ended.push({ output: parts[at], ...JSON.parse(parts[at + 1]) });
  return { ended, rest: parts.at(-1) };
}
