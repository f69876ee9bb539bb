import { writeSync } from 'node:fs';

/**
 * Ends the process with an explanation if its working directory is gone: packages read it on load, and settings may be
 * relative to it.
 */
export function refuseWithoutFolder(): void {
  try {
    process.cwd();
  } catch (error) {
    writeSync(
      2,
      `the folder that this program was started in is gone (${(error as NodeJS.ErrnoException).code}): start it in one that is there\n`,
    );
    process.exit(1);
  }
}
