/** Parser of an option that may be given several times, with `[]` as its default. */
export const repeatable = (one: string, before: readonly string[]): readonly string[] => [...before, one];
