/** How the suites of the stores' ports run. */
import { suite } from 'uvu';

/** The fixture of one guarantee, closed and removed after its test. */
interface Fixture<S> {
  readonly store: S;
  readonly destroy: () => Promise<void>;
}

/**
 * Runs the guarantees of a port as tests of one adapter, each on a fixture of its own. `deviations` names those that
 * the adapter can't keep, by test, with the reason: they are skipped, by name.
 */
export function checkPromises<S, F extends Fixture<S>>(
  title: string,
  promises: Readonly<Record<string, (store: S, fixture: F) => Promise<void>>>,
  open: () => Promise<F>,
  deviations: Readonly<Record<string, string>>,
): void {
  const test = suite(title);
  for (const deviation of Object.keys(deviations))
    if (!(deviation in promises)) throw new Error(`no such promise: ${deviation}`);
  for (const [promise, check] of Object.entries(promises)) {
    const reason = deviations[promise];
    if (reason !== undefined) {
      console.log(`skipped: ${title} deviates: ${promise}: ${reason}`);
      test.skip(promise, () => undefined);
      continue;
    }
    test(promise, async () => {
      const fixture = await open();
      try {
        await check(fixture.store, fixture);
      } finally {
        await fixture.destroy();
      }
    });
  }
  test.run();
}
