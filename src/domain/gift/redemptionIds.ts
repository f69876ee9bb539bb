/**
 * Redemption ids (docs/decisions.md#redemption-ids): 11 hexadecimal digits of the time, so that ids sort by it, and the
 * command part, 20 digits that are the same for every repetition of the command. Older ids are the command part alone.
 */
const TIME_DIGITS = 11;
const COMMAND_DIGITS = 20;

/** `at`: ISO 8601; up to the year 2527. */
export const redemptionIdAt = (at: string, commandPart: string): string =>
  Date.parse(at).toString(16).padStart(TIME_DIGITS, '0') + commandPart;

export const commandPartOf = (redemptionId: string): string => redemptionId.slice(-COMMAND_DIGITS);

/** The one that the command with this part has made. */
export function redemptionOfCommand<R extends { readonly id: string }>(
  redemptions: readonly R[],
  commandPart: string,
): R | undefined {
  return redemptions.find(({ id }) => commandPartOf(id) === commandPart);
}
