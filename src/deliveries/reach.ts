/**
 * When any endpoint has answered last, whatever it said. While none does, what reaches nothing may be our own outage
 * (docs/decisions.md#webhook-deliveries).
 */
export interface Reach {
  /** @param at milliseconds since the epoch */
  answered(at: number): void;
  /** Milliseconds since the epoch; `undefined`: none since this process leads. */
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
