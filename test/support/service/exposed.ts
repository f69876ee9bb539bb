/** Metrics as Prometheus reads them, for tests. */
import { Registry } from 'prom-client';
import { type Exposition, exposition } from '../../../src/metrics/exposition.js';

/** A value of the text format by its name with labels, as they stand there: `gift_x_total{a="b"}`. */
export type Values = ReadonlyMap<string, number>;

/** Reads the text format. @throws Error for a line that is none of it */
export function valuesOf(text: string): Values {
  const values = new Map<string, number>();
  for (const line of text.split('\n')) {
    if (line === '' || line.startsWith('# ')) continue;
    const [, name, value] = /^([a-z_][a-z0-9_]*(?:\{(?:[a-z_]+="[^"\n]*",?)+\})?) (\S+)$/.exec(line) ?? [];
    if (name === undefined) throw new Error(`no line of the text format: ${line}`);
    values.set(name, value === '+Inf' ? Infinity : Number(value));
  }
  return values;
}

/** Every name that a query may use: those of the metrics, and those of the parts of histograms. */
export function namesOf(text: string): Set<string> {
  const names = new Set<string>();
  for (const [, name, type] of text.matchAll(/^# TYPE (\S+) (\w+)$/gm)) {
    for (const part of type === 'histogram' ? ['_bucket', '_sum', '_count'] : ['']) names.add(`${name}${part}`);
  }
  return names;
}

/** A registry of its own. */
export function exposed(): { readonly show: Exposition; text(): Promise<string>; values(): Promise<Values> } {
  const registry = new Registry();
  return {
    show: exposition(registry),
    text: async () => registry.metrics(),
    values: async () => valuesOf(await registry.metrics()),
  };
}
