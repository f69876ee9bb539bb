/**
 * Linearizability of concurrent acts on one state, as of Wing and Gong: is there an order of the acts that agrees with
 * their times, in which the model gives every answer that was seen? Pairs of what is done and the state after it are
 * remembered, so no pair is searched twice. States that a later act excludes are left out. A step takes as long as there
 * are acts at about its time, not in all.
 */
import { createHash } from 'node:crypto';

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
  /** Whether no order in which it comes after this state explains it, whatever comes between. Default: no. */
  readonly excludes?: ((state: S) => boolean) | undefined;
  /** Optional acts with the same text do the same in every state: of two, one that comes first is tried only. */
  readonly effect?: string;
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
  | { readonly kind: 'ok'; readonly steps: number }
  | { readonly kind: 'wrong'; readonly steps: number; readonly stuck: Stuck<S> }
  /** The search was ended after `steps` steps. */
  | { readonly kind: 'undecided'; readonly steps: number; readonly stuck: Stuck<S> };

/** Steps after which a search gives up. */
export const MOST_STEPS = 200_000;

/** Whether an order exists. @param initial the state before all acts, of JSON values only */
export function linearize<S>(initial: S, acts: readonly Act<S>[], mostSteps = MOST_STEPS): Verdict<S> {
  const search = new Search(initial, acts, mostSteps);
  const found = search.run(initial);
  const { steps, furthest: stuck } = search;
  if (found) return { kind: 'ok', steps };
  return { kind: steps < mostSteps ? 'wrong' : 'undecided', steps, stuck };
}

/** Acts that may come next, by their numbers. */
interface Enabled {
  readonly required: readonly number[];
  readonly optional: readonly number[];
}

class Search<S> {
  steps = 0;
  furthest: Stuck<S>;
  private furthestDone = -1;
  /** In the order in which they began. An act's number is its index here. */
  private readonly acts: readonly Act<S>[];
  private readonly mostSteps: number;
  private readonly required: readonly number[];
  private readonly optional: readonly number[];
  /** Required acts that exclude states before them. */
  private readonly excluding: readonly number[];
  private readonly done: Uint8Array;
  /** Index in `required` of the first act that is not done. */
  private first = 0;
  private requiredDone = 0;
  /** What is done, in its order, each with the latest beginning of all acts up to it. */
  private readonly order: { readonly index: number; readonly begun: number }[] = [];
  /** Of required acts that are done and the state after them: sets of optional acts that could come then, in vain. */
  private readonly inVain = new Map<string, ReadonlySet<number>[]>();

  constructor(initial: S, acts: readonly Act<S>[], mostSteps: number) {
    this.acts = acts.toSorted((one, other) => one.from - other.from);
    this.mostSteps = mostSteps;
    const numbers = [...this.acts.keys()];
    this.required = numbers.filter((index) => this.at(index).required);
    this.optional = numbers.filter((index) => !this.at(index).required);
    this.excluding = this.required.filter((index) => this.at(index).excludes !== undefined);
    this.done = new Uint8Array(this.acts.length);
    this.furthest = { state: initial, done: [], next: [] };
  }

  /** Searches depth first. @returns whether an order was found */
  run(initial: S): boolean {
    const path = [this.continuations(initial)];
    while (this.requiredDone < this.required.length) {
      const next = path.at(-1)?.next();
      if (next === undefined || this.steps >= this.mostSteps) return this.requiredDone === this.required.length;
      if (next.done === true) path.pop();
      else path.push(this.continuations(next.value));
    }
    return true;
  }

  /** Takes one act after the other that can come next, each undone before the next one. @yields the state after it */
  private *continuations(state: S): Generator<S, void> {
    const mark = this.order.length;
    const { required, optional } = this.takeReads(state);
    if (this.requiredDone === this.required.length) return;
    if (!this.wasInVain(state, optional)) {
      this.note(state, required);
      // An optional act is taken only where no required one leads to the end: it can come later, too.
      for (const index of [...required, ...this.withoutTwins(optional)])
        for (const next of this.at(index).apply(state)) {
          if (next === state ? !this.at(index).required : this.isExcluded(next)) continue;
          this.take(index);
          yield next;
          this.undo();
        }
    }
    while (this.order.length > mark) this.undo();
  }

  /** Leaves out acts that do the same as one that began earlier, and is over earlier: that one can take their place. */
  private withoutTwins(optional: readonly number[]): number[] {
    const ends = new Map<string, number>();
    return optional.filter((index) => {
      const { effect, to = Infinity } = this.at(index);
      if (effect === undefined) return true;
      const hasTwin = (ends.get(effect) ?? NaN) <= to;
      if (!hasTwin) ends.set(effect, to);
      return !hasTwin;
    });
  }

  /** Whether an act that is still to come says that this state can't have been. */
  private isExcluded(state: S): boolean {
    return this.excluding.some((index) => this.done[index] !== 1 && this.at(index).excludes?.(state) === true);
  }

  /**
   * Takes reads that fit: whatever order exists, it exists with such a read moved here. A read after which an optional
   * act would be over does not come first. @returns what may come next then
   */
  private takeReads(state: S): Enabled {
    for (;;) {
      const enabled = this.enabled();
      const soonestEnd = Math.min(...enabled.optional.map((index) => this.at(index).to ?? Infinity));
      const reads = [...enabled.required, ...enabled.optional].filter((index) => {
        const act = this.at(index);
        return act.reads && act.from <= soonestEnd && act.apply(state)[0] === state;
      });
      if (reads.length === 0) return enabled;
      for (const index of reads) this.take(index);
    }
  }

  /**
   * Whether no order goes on from here, as was found before: from the same state with the same required acts done, and
   * with at least the optional acts to come that there are now. Later ones come in both. Notes this search for the next.
   */
  private wasInVain(state: S, optional: readonly number[]): boolean {
    const memo = createHash('sha256')
      .update(`${this.requiredInMemo()} ${JSON.stringify(state)}`)
      .digest('base64');
    const known = this.inVain.get(memo) ?? [];
    if (known.some((more) => optional.every((index) => more.has(index)))) return true;
    const now = new Set(optional);
    this.inVain.set(memo, [...known.filter((less) => ![...less].every((index) => now.has(index))), now]);
    return false;
  }

  /** Which required acts are done: all before the first that is not, and some that began before its end. */
  private requiredInMemo(): string {
    const done = [this.first];
    const { to: end = Infinity } = this.at(this.required[this.first] ?? -1);
    for (let at = this.first + 1; at < this.required.length; at++) {
      const index = this.required[at] ?? -1;
      if (this.at(index).from > end) break;
      if (this.done[index] === 1) done.push(index);
    }
    return done.join();
  }

  private take(index: number): void {
    this.steps++;
    this.order.push({ index, begun: Math.max(this.begun(), this.at(index).from) });
    this.done[index] = 1;
    if (!this.at(index).required) return;
    this.requiredDone++;
    while (this.done[this.required[this.first] ?? -1] === 1) this.first++;
  }

  private undo(): void {
    const { index } = this.order.pop() ?? { index: -1 };
    this.done[index] = 0;
    if (!this.at(index).required) return;
    this.requiredDone--;
    while ((this.required[this.first - 1] ?? -1) >= index) this.first--;
  }

  /** The latest beginning of what is done. */
  private begun(): number {
    return this.order.at(-1)?.begun ?? -Infinity;
  }

  /**
   * Acts that may come next: those that began before any other required act that is not done had ended, and that had not
   * ended before the last one that is done began. Required ones never have.
   */
  private enabled(): Enabled {
    let end = Infinity;
    const open: number[] = [];
    for (let at = this.first; at < this.required.length; at++) {
      const index = this.required[at] ?? -1;
      if (this.done[index] === 1) continue;
      const { from, to = Infinity } = this.at(index);
      if (from > end) break;
      open.push(index);
      end = Math.min(end, to);
    }
    const begun = this.begun();
    const optional: number[] = [];
    for (const index of this.optional) {
      const { from, to = Infinity } = this.at(index);
      if (from > end) break;
      if (this.done[index] !== 1 && to >= begun) optional.push(index);
    }
    return { required: open.filter((index) => this.at(index).from <= end), optional };
  }

  private note(state: S, next: readonly number[]): void {
    if (this.requiredDone <= this.furthestDone) return;
    this.furthestDone = this.requiredDone;
    const done = this.order.map(({ index }) => this.at(index));
    this.furthest = { state, done, next: next.map((index) => this.at(index)) };
  }

  private at(index: number): Act<S> {
    const act = this.acts[index];
    if (act === undefined) throw new Error(`no act ${index}`);
    return act;
  }
}
