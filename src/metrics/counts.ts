/** Counters by one or two labels, in plain maps. Label values come from the program, so there are few. */
import type { Sample } from './exposition.js';

export interface Counts {
  add(first: string, second?: string): void;
  samples(): Iterable<Sample>;
}

/**
 * `labels`: how many labels a count has. `zeros`: shown from the start, since a series that begins at its first failure
 * shows an alert no increase.
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
