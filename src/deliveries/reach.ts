/**
 * Time of the last answer of any endpoint, whatever its status. While none answers, unreachable endpoints may be due to
 * an outage of our own (docs/decisions/outages-of-our-own.md).
 */
export interface Reach {
  /** Notes an answer of any endpoint. @param at milliseconds since the epoch */
  answered(at: number): void;
  /** Milliseconds since the epoch; `undefined`: no answer since this process leads. */
  lastAnswerAt(): number | undefined;
  /** `again` is called at the next answer, once. */
  onAnswer(again: () => void): void;
}

export function openReach(): Reach {
  const waiting = new Set<() => void>();
  let last: number | undefined;
  return {
    answered(at) {
      last = at;
      const woken = [...waiting];
      waiting.clear();
      for (const again of woken) again();
    },
    lastAnswerAt: () => last,
    onAnswer: (again) => void waiting.add(again),
  };
}
