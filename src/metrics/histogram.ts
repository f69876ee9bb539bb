/** Default bounds, for the time of an answer to a caller, in seconds. */
const DURATION_BOUNDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10] as const;

export interface Histogram {
  /** Ascending upper bounds, without the last bucket (everything). */
  readonly bounds: readonly number[];
  /** Number of values in each bucket, not cumulative; the last bucket is above every bound. */
  readonly counts: Float64Array;
  readonly sum: number;
  observe(value: number): void;
}

export function histogram(bounds: readonly number[] = DURATION_BOUNDS): Histogram {
  const counts = new Float64Array(bounds.length + 1);
  let sum = 0;
  return {
    bounds,
    counts,
    get sum() {
      return sum;
    },
    observe(value) {
      let bucket = 0;
      while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
      counts[bucket] = (counts[bucket] as number) + 1;
      sum += value;
    },
  };
}

interface Histograms {
  of(label: string): Histogram;
  samples(): Iterable<readonly [labels: readonly [string], histogram: Histogram]>;
}

export function histograms(): Histograms {
  const byLabel = new Map<string, Histogram>();
  return {
    of(label) {
      const known = byLabel.get(label) ?? histogram();
      byLabel.set(label, known);
      return known;
    },
    *samples() {
      for (const [label, one] of byLabel) yield [[label], one];
    },
  };
}
