/** A history of acts without an order, told in few lines: its smallest part that is still wrong. */
import { type Act, type Stuck, linearize } from './linearizable.js';

/** Steps of each search for a smaller part that is wrong, and of all of them for one history. */
const MOST_STEPS_OF_PART = 20_000;
const MOST_STEPS_OF_ALL = 200_000;

interface Part<S> {
  readonly acts: readonly Act<S>[];
  readonly stuck: Stuck<S>;
}

/**
 * The smallest part of the acts that is still wrong: the acts up to the first end at which no order exists any more,
 * without reads that do not matter. `undefined` where none was found in so many steps.
 * @param cut the same act where its end is not seen yet; `undefined` where it then matters no more
 */
export function smallest<S>(
  initial: S,
  acts: readonly Act<S>[],
  cut: (act: Act<S>) => Act<S> | undefined,
): Part<S> | undefined {
  let left = MOST_STEPS_OF_ALL;
  const wrong = (some: readonly Act<S>[]): Part<S> | undefined => {
    const verdict = linearize(initial, some, Math.min(MOST_STEPS_OF_PART, left));
    left -= verdict.steps;
    return verdict.kind === 'wrong' ? { acts: some, stuck: verdict.stuck } : undefined;
  };
  const found = shortest(acts, cut, wrong);
  return found === undefined ? undefined : told(initial, withoutReads(found, wrong));
}

/** The same part, with how far its acts go one by one: whoever reads it knows of no later one. */
function told<S>(initial: S, part: Part<S>): Part<S> {
  const acts = part.acts.map((act) => ({ ...act, excludes: undefined }));
  const verdict = linearize(initial, acts, MOST_STEPS_OF_PART);
  return verdict.kind === 'ok' ? part : { acts, stuck: verdict.stuck };
}

/** The acts up to the first end at which they are wrong. */
function shortest<S>(
  acts: readonly Act<S>[],
  cut: (act: Act<S>) => Act<S> | undefined,
  wrong: (some: readonly Act<S>[]) => Part<S> | undefined,
): Part<S> | undefined {
  const upTo = (time: number): Act<S>[] =>
    acts.flatMap((act) => {
      if (act.from > time) return [];
      if (act.to !== undefined && act.to <= time) return [act];
      return cut(act) ?? [];
    });
  const ends = acts.flatMap(({ to }) => to ?? []).toSorted((one, other) => one - other);
  let found: Part<S> | undefined;
  let [low, high] = [0, ends.length - 1];
  while (low <= high) {
    const middle = (low + high) >> 1;
    const part = wrong(upTo(ends[middle] ?? 0));
    if (part === undefined) low = middle + 1;
    else {
      found = part;
      high = middle - 1;
    }
  }
  return found;
}

/** The same without reads that do not matter: first many are left out at once, then fewer, at last one by one. */
function withoutReads<S>(part: Part<S>, wrong: (some: readonly Act<S>[]) => Part<S> | undefined): Part<S> {
  let found = part;
  const reads = part.acts.filter((act) => act.reads);
  for (let size = reads.length; size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2))
    for (let from = 0; from < reads.length; from += size) {
      const without = new Set(reads.slice(from, from + size));
      const rest = found.acts.filter((act) => !without.has(act));
      if (rest.length < found.acts.length) found = wrong(rest) ?? found;
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
