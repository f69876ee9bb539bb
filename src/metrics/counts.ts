/** Counts by one or two labels. Label values come from the program, so there are few. */
import type { Sample } from './exposition.js';

interface Counts {
  add(first: string, second?: string): void;
  samples(): Iterable<Sample>;
}

/**
 * @param zeros first labels that are shown from the start, with 0: an alert sees no increase in a series that starts
 * with its first failure
 */
export function counts(labels: 1 | 2, zeros: readonly string[] = []): Counts {
  const byFirst = new Map(zeros.map((first) => [first, new Map([['', 0]])]));
  return {
    add(first, second = '') {
      let bySecond = byFirst.get(first);
      if (bySecond === undefined) byFirst.set(first, (bySecond = new Map()));
      bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
    },
    *samples() {
      for (const [first, bySecond] of byFirst)
        for (const [second, count] of bySecond) yield [labels === 1 ? [first] : [first, second], count];
    },
  };
}
