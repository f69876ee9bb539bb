/** Suites whose every test has a house of its own, closed when the test is over. */
import { suite, type Test } from 'uvu';
import { type TestInstallation, openInstallation } from './installation.js';
import { openRealProviders, type RealProviders } from '../providers/realProviders.js';

/**
 * A suite whose tests get a `installation`; nothing works in it yet. A suite that wants more of it does that in a
 * `before.each` of its own.
 */
export function installationSuite(title: string): Test<{ installation: TestInstallation }> {
  const test = suite<{ installation: TestInstallation }>(title);
  test.before.each(async (context) => {
    context.installation = await openInstallation();
  });
  test.after.each(({ installation }) => installation.close());
  return test;
}

/** A suite whose tests get `providers` too: stand-ins that the house's workers can talk to. */
export function installationWithProvidersSuite(
  title: string,
): Test<{ installation: TestInstallation; providers: RealProviders }> {
  const test = suite<{ installation: TestInstallation; providers: RealProviders }>(title);
  test.before.each(async (context) => {
    context.installation = await openInstallation();
    context.providers = await openRealProviders();
  });
  test.after.each(async ({ installation, providers }) => {
    await installation.close();
    await providers.close();
  });
  return test;
}
