import { writeSync } from 'node:fs';

/** Ends a process that was given arguments: a program without any must not start where its help is requested. */
export function refuseArguments(usage: string): void {
  const [first] = process.argv.slice(2);
  if (first === undefined) return;
  const isHelp = first === '--help' || first === '-h';
  writeSync(isHelp ? 1 : 2, isHelp ? `${usage}\n` : `${JSON.stringify(first)} is not understood. ${usage}\n`);
  process.exit(isHelp ? 0 : 2);
}
