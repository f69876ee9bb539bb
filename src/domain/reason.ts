/** The longest reason that a person may give (docs/decisions.md#acting-person), in UTF-16 code units. */
export const MAX_REASON = 500;
