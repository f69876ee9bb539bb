/** Prints what a bench found: a small table, and whether it is enough. */

/** The middle one of several figures: one disturbed round changes nothing. */
export function median(figures: readonly number[]): number {
  const sorted = [...figures].sort((one, other) => one - other);
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
}

/** Latencies in milliseconds; 0 where there is none. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/** @param latencies in any order; they are sorted */
export function latenciesOf(latencies: number[]): Latencies {
  latencies.sort((one, other) => one - other);
  const { length } = latencies;
  const at = (share: number): number => latencies[Math.min(length - 1, Math.floor(length * share))] ?? 0;
  return { p50: at(0.5), p99: at(0.99), max: at(1) };
}

/** Prints columns under a heading each; numbers are aligned right. */
export function table(rows: readonly Readonly<Record<string, string | number>>[]): void {
  const names = Object.keys(rows[0] ?? {});
  const cells = rows.map((row) => names.map((name) => shown(row[name] ?? '')));
  const widths = names.map((name, column) => Math.max(name.length, ...cells.map((row) => row[column]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
      .join('  ');
  console.log([line(names), ...cells.map(line)].join('\n'));
}

/** The same as a table of Markdown; numbers of all columns but the first are aligned right. */
export function markdown(rows: readonly Readonly<Record<string, string | number>>[]): string {
  const names = Object.keys(rows[0] ?? {});
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const all = rows.map((row) => line(names.map((name) => shown(row[name] ?? ''))));
  return [line(names), line(names.map((_, column) => (column === 0 ? '---' : '--:'))), ...all].join('\n');
}

/** A number as tables have it; text as it is. */
export function shown(value: string | number): string {
  if (typeof value === 'string') return value;
  return value >= 100 ? Math.round(value).toLocaleString('en') : value.toFixed(value >= 10 ? 1 : 2);
}

/** Says whether a figure is good enough; a bench with one that isn't fails. */
export function verdict(
  what: string,
  figure: number,
  bound: { readonly atLeast: number } | { readonly atMost: number },
  unit = '',
): void {
  const good = 'atLeast' in bound ? figure >= bound.atLeast : figure <= bound.atMost;
  const wanted = 'atLeast' in bound ? `at least ${bound.atLeast}` : `at most ${bound.atMost}`;
  console.log(`${good ? 'ok  ' : 'FAIL'} ${what}: ${shown(figure)}${unit} (${wanted}${unit})`);
  if (!good) process.exitCode = 1;
}
