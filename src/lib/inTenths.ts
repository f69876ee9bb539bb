/** Rounds seconds to tenths, as fronts show them. */
export function inTenths(seconds: number): number {
  return Math.round(seconds * 10) / 10;
}
