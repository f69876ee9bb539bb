/** Shown in place of a hidden value. */
export const MASK = '***';
