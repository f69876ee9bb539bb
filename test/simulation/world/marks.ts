/**
 * Marks of states that a run should sometimes reach. Many seeds together must reach each of them: a mark that none
 * reaches shows that the simulation lacks a fault or work.
 */
export interface Marks {
  /** Notes that the state called `name` was reached; with `reached` false, that it could have been. */
  sometimes(name: string, reached?: boolean): void;
  /** How often each state was reached, by name. */
  counts(): ReadonlyMap<string, number>;
}

export function openMarks(): Marks {
  const counts = new Map<string, number>();
  return {
    sometimes(name, reached = true) {
      counts.set(name, (counts.get(name) ?? 0) + (reached ? 1 : 0));
    },
    counts: () => new Map([...counts].sort(([one], [other]) => (one < other ? -1 : 1))),
  };
}
