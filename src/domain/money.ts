/** Money: whole pence everywhere, and pounds only where people or the API's prices show it. */

/**
 * Pence as pounds with two decimals: `1050` is `"10.50"`, `-5` is `"-0.05"`. Exact: no division leaves a fraction.
 * @throws RangeError for what is not a whole number of pence, or so large that a number no longer holds each penny
 */
export function pounds(pence: number): string {
  if (!Number.isSafeInteger(pence)) throw new RangeError(`${pence} is no whole number of pence`);
  const amount = Math.abs(pence);
  const rest = amount % 100;
  return `${pence < 0 ? '-' : ''}${(amount - rest) / 100}.${String(rest).padStart(2, '0')}`;
}
