/** What stands in place of a value that is not shown. */
export const MASK = '***';
