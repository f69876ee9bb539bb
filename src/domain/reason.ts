/** Why a person did something: kept with the events or the record that tells of it (decisions 11). */

/** The longest reason that may be given, in UTF-16 code units. */
export const MAX_REASON = 500;
