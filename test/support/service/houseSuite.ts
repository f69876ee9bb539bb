/** Suites whose every test has a house of its own, closed when the test is over. */
import { suite, type Test } from 'uvu';
import { type House, openHouse } from './house.js';
import { openRealProviders, type RealProviders } from '../providers/realProviders.js';

/**
 * A suite whose tests get a `house`; nothing works in it yet. A suite that wants more of it does that in a
 * `before.each` of its own.
 */
export function houseSuite(title: string): Test<{ house: House }> {
  const test = suite<{ house: House }>(title);
  test.before.each(async (context) => {
    context.house = await openHouse();
  });
  test.after.each(({ house }) => house.close());
  return test;
}

/** A suite whose tests get `providers` too: stand-ins that the house's workers can talk to. */
export function houseWithProvidersSuite(title: string): Test<{ house: House; providers: RealProviders }> {
  const test = suite<{ house: House; providers: RealProviders }>(title);
  test.before.each(async (context) => {
    context.house = await openHouse();
    context.providers = await openRealProviders();
  });
  test.after.each(async ({ house, providers }) => {
    await house.close();
    await providers.close();
  });
  return test;
}
