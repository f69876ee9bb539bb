/** The longest reason that a person may give (decisions 11), in UTF-16 code units. */
export const MAX_REASON = 500;
