/** Pence as pounds with two decimals: `1050` is `"10.50"`, `-5` is `"-0.05"`. @throws RangeError for unsafe integers */
export function pounds(pence: number): string {
  if (!Number.isSafeInteger(pence)) throw new RangeError(`${pence} is not a whole number of pence`);
  const amount = Math.abs(pence);
  const rest = amount % 100;
  return `${pence < 0 ? '-' : ''}${(amount - rest) / 100}.${String(rest).padStart(2, '0')}`;
}
