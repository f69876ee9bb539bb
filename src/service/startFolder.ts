import { writeSync } from 'node:fs';

/**
 * Ends the process with a line that says what to change where its working directory is gone: packages read it while
 * they are loaded, and settings may be paths below it.
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
