/**
 * Redemption ids (docs/decisions/redemption-ids.md): 11 hexadecimal digits of the time, by which ids sort, and the
 * command part. The command part has 20 digits, which are the same for every repetition of the command. Older ids
 * consist of the command part only.
 */
const TIME_DIGITS = 11;
const COMMAND_DIGITS = 20;

/** `at`: time of the redemption (ISO 8601), up to the year 2527. */
export const redemptionIdAt = (at: string, commandPart: string): string =>
  Date.parse(at).toString(16).padStart(TIME_DIGITS, '0') + commandPart;

export const commandPartOf = (redemptionId: string): string => redemptionId.slice(-COMMAND_DIGITS);

/** The redemption that a command made, found by the command's part of the redemption's id. */
export function redemptionOfCommand<R extends { readonly id: string }>(
  redemptions: readonly R[],
  commandPart: string,
): R | undefined {
  return redemptions.find(({ id }) => commandPartOf(id) === commandPart);
}
