/** Maximum length of a reason in UTF-16 code units (docs/support.md#acting-person). */
export const MAX_REASON = 500;
