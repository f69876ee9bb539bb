/**
 * Linearizability of concurrent acts on one state, as of Wing and Gong: is there an order of the acts that agrees with
 * their times, in which the model gives every answer that was seen? Pairs of what is done and the state after it are
 * remembered, so no pair is searched twice.
 */

/** One act: a request, or what happens by itself. */
export interface Act<S> {
  /** Ms; it takes effect between `from` and `to`. `to` is `undefined` where no end is known. */
  readonly from: number;
  readonly to: number | undefined;
  /** Whether it took effect for certain. An optional act may be left out. */
  readonly required: boolean;
  /** Whether it changes no state, whichever it meets. */
  readonly reads: boolean;
  /** The states after it, from which the search goes on; none where it does not fit this state. */
  apply(state: S): readonly S[];
  /** One line of what was seen. */
  describe(): string;
  /** One line of what the model expects in this state. */
  expects(state: S): string;
}

/** Where the search got furthest. */
export interface Stuck<S> {
  readonly state: S;
  /** In the order in which they fit. */
  readonly done: readonly Act<S>[];
  /** The acts of which one had to come next, none of which fits. */
  readonly next: readonly Act<S>[];
}

export type Verdict<S> =
  | { readonly kind: 'ok' }
  | { readonly kind: 'wrong'; readonly stuck: Stuck<S> }
  /** The search was ended after `steps` steps. */
  | { readonly kind: 'undecided'; readonly steps: number; readonly stuck: Stuck<S> };

/** Steps after which a search gives up. */
export const MOST_STEPS = 200_000;
/** The same for each search for a smaller part that is wrong. */
const MOST_STEPS_OF_PART = 20_000;

/** Whether an order exists. @param initial the state before all acts, of JSON values only */
export function linearize<S>(initial: S, acts: readonly Act<S>[], mostSteps = MOST_STEPS): Verdict<S> {
  const search = new Search(initial, acts, mostSteps);
  if (search.from(initial, 0n)) return { kind: 'ok' };
  if (search.ended) return { kind: 'undecided', steps: search.steps, stuck: search.furthest };
  return { kind: 'wrong', stuck: search.furthest };
}

class Search<S> {
  steps = 0;
  /** Whether it ended for the number of its steps. */
  ended = false;
  furthest: Stuck<S>;
  private furthestDone = -1;
  private readonly acts: readonly Act<S>[];
  private readonly mostSteps: number;
  private readonly required: bigint;
  /** Of required acts that are done and the state after them: sets of optional acts done with them, in vain. */
  private readonly inVain = new Map<string, bigint[]>();
  private readonly order: Act<S>[] = [];

  constructor(initial: S, acts: readonly Act<S>[], mostSteps: number) {
    this.acts = acts.toSorted((one, other) => one.from - other.from);
    this.mostSteps = mostSteps;
    this.required = this.acts.reduce((all, act, index) => (act.required ? all | (1n << BigInt(index)) : all), 0n);
    this.furthest = { state: initial, done: [], next: [] };
  }

  /** Whether the acts that are not done can follow in some order. */
  from(state: S, done: bigint): boolean {
    if ((done & this.required) === this.required) return true;
    if (this.steps >= this.mostSteps) {
      this.ended = true;
      return false;
    }
    this.steps++;
    const enabled = this.enabled(done);
    const optional = enabled.filter((index) => !this.at(index).required);
    const soonestEnd = Math.min(...optional.map((index) => this.at(index).to ?? Infinity));
    // A read that fits can come first, unless an optional act would be over by then: whatever order exists, it exists
    // with this read moved here.
    for (const index of enabled) {
      const act = this.at(index);
      if (act.reads && act.from <= soonestEnd && act.apply(state)[0] === state) return this.after(state, done, index);
    }
    if (this.wasInVain(state, done)) return false;
    this.note(state, enabled);
    // An optional act is taken only where no required one leads to the end: it can come later, too.
    const required = enabled.filter((index) => this.at(index).required);
    return [...required, ...optional].some((index) => {
      const act = this.at(index);
      return act.apply(state).some((next) => (act.required || next !== state) && this.after(next, done, index));
    });
  }

  /**
   * Whether no order goes on from here, as was found before: from the same state with the same required acts done, and
   * with no more of the optional ones, which leaves at least as many to come. Notes this search for the next one.
   */
  private wasInVain(state: S, done: bigint): boolean {
    const memo = `${(done & this.required).toString(36)} ${JSON.stringify(state)}`;
    const optional = done & ~this.required;
    const known = this.inVain.get(memo) ?? [];
    if (known.some((fewer) => (fewer & ~optional) === 0n)) return true;
    this.inVain.set(memo, [...known.filter((more) => (optional & ~more) !== 0n), optional]);
    return false;
  }

  private after(state: S, done: bigint, index: number): boolean {
    this.order.push(this.at(index));
    const found = this.from(state, done | (1n << BigInt(index)));
    this.order.pop();
    return found;
  }

  /**
   * Acts that may come next: those that began before any other required act that is not done had ended, and that had not
   * ended before the last one that is done began.
   */
  private enabled(done: bigint): number[] {
    let end = Infinity;
    let begun = -Infinity;
    const open: number[] = [];
    for (const [index, act] of this.acts.entries()) {
      if ((done & (1n << BigInt(index))) !== 0n) begun = act.from;
      else if (act.from <= end) {
        open.push(index);
        if (act.required && act.to !== undefined) end = Math.min(end, act.to);
      }
    }
    return open.filter((index) => {
      const { from, to = Infinity } = this.at(index);
      return from <= end && to >= begun;
    });
  }

  private note(state: S, enabled: readonly number[]): void {
    const required = this.order.filter((act) => act.required).length;
    if (required <= this.furthestDone) return;
    this.furthestDone = required;
    const next = enabled.map((index) => this.at(index));
    this.furthest = { state, done: [...this.order], next: next.filter((act) => act.required) };
  }

  private at(index: number): Act<S> {
    const act = this.acts[index];
    if (act === undefined) throw new Error(`no act ${index}`);
    return act;
  }
}

/**
 * The smallest part of the acts that is still wrong: the acts up to the first end at which no order exists any more,
 * without reads that do not matter.
 * @param cut the same act where its end is not seen yet; `undefined` where it then matters no more
 */
export function smallest<S>(
  initial: S,
  acts: readonly Act<S>[],
  cut: (act: Act<S>) => Act<S> | undefined,
): { readonly acts: readonly Act<S>[]; readonly stuck: Stuck<S> } | undefined {
  const wrong = (some: readonly Act<S>[]): Stuck<S> | undefined => {
    const verdict = linearize(initial, some, MOST_STEPS_OF_PART);
    return verdict.kind === 'wrong' ? verdict.stuck : undefined;
  };
  const upTo = (time: number): Act<S>[] =>
    acts.flatMap((act) => {
      if (act.from > time) return [];
      if (act.to !== undefined && act.to <= time) return [act];
      return cut(act) ?? [];
    });
  const ends = acts.flatMap(({ to }) => to ?? []).toSorted((one, other) => one - other);
  let found: { acts: readonly Act<S>[]; stuck: Stuck<S> } | undefined;
  let [low, high] = [0, ends.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const part = upTo(ends[middle] ?? 0);
    const stuck = wrong(part);
    if (stuck === undefined) low = middle + 1;
    else {
      found = { acts: part, stuck };
      high = middle - 1;
    }
  }
  if (found === undefined) return undefined;
  for (const act of found.acts.filter(({ reads }) => reads)) {
    const part: readonly Act<S>[] = found.acts.filter((one) => one !== act);
    const stuck = wrong(part);
    if (stuck !== undefined) found = { acts: part, stuck };
  }
  return found;
}

/** A finding in words, of at most 30 lines. @param show a state in one line */
export function explain<S>(
  subject: string,
  { acts, stuck }: { readonly acts: readonly Act<S>[]; readonly stuck: Stuck<S> },
  show: (state: S) => string,
): string {
  const left = acts
    .filter((act) => !act.required && !stuck.done.includes(act))
    .map((act) => `  (may be) ${act.describe()}`);
  const done = stuck.done.map((act) => `  ${act.describe()}`);
  const next = stuck.next.flatMap((act) => [
    `  ${act.describe()}`,
    `    the model expects ${act.expects(stuck.state)}`,
  ]);
  const lines = [
    `${subject}: no order of these acts explains every answer.`,
    'Explained, in this order:',
    ...shortened(done, 12),
    'The state then:',
    `  ${show(stuck.state)}`,
    'None of these can come next:',
    ...shortened(next, 8),
    ...shortened(left, 3),
  ];
  return lines.join('\n');
}

/** The last lines, where they are too many. */
function shortened(lines: readonly string[], most: number): string[] {
  if (lines.length <= most) return [...lines];
  return [`  … ${lines.length - most + 1} more`, ...lines.slice(1 - most)];
}
