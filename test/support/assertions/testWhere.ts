/** Tests that not every machine can run. */
import { type Test, suite } from 'uvu';

/** A suite that can't be run here: skipped by name and with the reason, as one test. */
export function skipSuite(name: string, reason: string | undefined): void {
  console.log(`skipped: ${name}: ${reason}`);
  const skipped = suite(name);
  skipped.skip(name, () => undefined);
  skipped.run();
}

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
