/** Tests that not every machine can run. */
import type { Test } from 'uvu';

/** Adds a test to a suite; where it can't be run it is skipped, by name and with the reason. */
export function testWhere<T>(
  suite: Test<T>,
  possible: boolean,
  otherwise: string,
  name: string,
  run: (context: T) => Promise<void> | void,
): void {
  if (possible) suite(name, run);
  else {
    console.log(`skipped: ${name}: ${otherwise}`);
    suite.skip(name, run);
  }
}
