import type { Metric, Registry } from 'prom-client';
import type { Histogram } from './histogram.js';

/** Values of labels, in the order of the metric's label names. */
type LabelValues = readonly (string | number)[];

export type Sample = readonly [labels: LabelValues, value: number];

/**
 * A metric's name and labels. Label values come from the program (route patterns, subjects, names of projections),
 * never from callers.
 */
export interface MetricText {
  readonly name: string;
  readonly help: string;
  readonly labels?: readonly string[];
}

type ReadSamples = () => Iterable<Sample> | Promise<Iterable<Sample>>;

interface Value {
  readonly metricName?: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

export interface Exposition {
  counter(text: MetricText, read: ReadSamples): void;
  gauge(text: MetricText, read: ReadSamples): void;
  histogram(text: MetricText, read: () => Iterable<readonly [labels: LabelValues, histogram: Histogram]>): void;
}

export function exposition(registry: Registry): Exposition {
  const register = (
    type: 'counter' | 'gauge' | 'histogram',
    { name, help }: MetricText,
    values: () => Promise<Value[]>,
  ): void => {
    const metric = {
      name,
      help,
      type,
      get: async () => ({ name, help, type, aggregator: 'sum', values: await values() }),
    };
    // The registry uses only a metric's name and `get`.
    registry.registerMetric(metric as unknown as Metric);
  };
  const plain =
    (type: 'counter' | 'gauge') =>
    (text: MetricText, read: ReadSamples): void => {
      register(type, text, async () =>
        Array.from(await read(), ([labels, value]) => ({ labels: named(text, labels), value })),
      );
    };
  return {
    counter: plain('counter'),
    gauge: plain('gauge'),
    histogram(text, read) {
      register('histogram', text, async () =>
        Array.from(read(), ([labels, one]) => valuesOf(text.name, named(text, labels), one)).flat(),
      );
    },
  };
}

function named({ labels = [] }: MetricText, values: LabelValues): Record<string, string | number> {
  return Object.fromEntries(labels.map((label, at) => [label, values[at] ?? '']));
}

/** Values of a histogram. Buckets are cumulative; the last is the count. */
function valuesOf(name: string, labels: Value['labels'], { bounds, counts, sum }: Histogram): Value[] {
  const values: Value[] = [];
  let count = 0;
  for (const [bucket, inBucket] of counts.entries()) {
    count += inBucket;
    values.push({ metricName: `${name}_bucket`, labels: { ...labels, le: bounds[bucket] ?? '+Inf' }, value: count });
  }
  values.push({ metricName: `${name}_sum`, labels, value: sum }, { metricName: `${name}_count`, labels, value: count });
  return values;
}
