/** Lines over time or days, drawn as SVG, with what they say as a sentence for all who don't see them. */
import { useId } from 'preact/hooks';

export interface Series {
  readonly name: string;
  readonly values: readonly number[];
}

export interface Point {
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly label: string;
}

interface PlotProps {
  readonly caption: string;
  /** Each has a value for each point. */
  readonly series: readonly Series[];
  /** From left to right. */
  readonly points: readonly Point[];
  readonly format: (value: number) => string;
}

/** The drawing is stretched to the width that it gets, so its texts are beside it. */
const WIDTH = 1_000;
const HEIGHT = 200;
const EDGE = 4;

export function Plot({ caption, series, points, format }: PlotProps) {
  const id = useId();
  const all = series.flatMap(({ values }) => values);
  const [first, last] = [points[0], points.at(-1)];
  if (first === undefined || last === undefined || first === last)
    return <p>{caption}: a plot begins with the second value.</p>;
  const [most, least] = [Math.max(0, ...all), Math.min(0, ...all)];
  const range = most - least || 1;
  const span = last.at - first.at || 1;
  const x = ({ at }: Point): number => ((at - first.at) / span) * WIDTH;
  const y = (value: number): number => HEIGHT - EDGE - ((value - least) / range) * (HEIGHT - 2 * EDGE);
  const line = (values: readonly number[]): string =>
    points.map((point, n) => `${x(point).toFixed(1)},${y(values[n] ?? 0).toFixed(1)}`).join(' ');
  return (
    <figure class="plot">
      <figcaption id={`${id}-caption`}>{caption}</figcaption>
      <p class="edge">
        <span>{format(most)}</span>
      </p>
      <svg
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-labelledby={`${id}-caption`}
        aria-describedby={id}
      >
        {[most, 0, least].map((value, n) => (
          <line key={n} class="axis" x1="0" x2={WIDTH} y1={y(value)} y2={y(value)} />
        ))}
        {series.map(({ name, values }, n) => (
          <polyline key={name} class={`line line-${n}`} points={line(values)} />
        ))}
      </svg>
      {least === 0 ? null : (
        <p class="edge">
          <span>{format(least)}</span>
        </p>
      )}
      <p class="edge">
        <span>{first.label}</span>
        <span>{last.label}</span>
      </p>
      <ul class="legend" id={id}>
        {series.map(({ name, values }, n) => (
          <li key={name}>
            <svg viewBox="0 0 30 8" aria-hidden="true">
              <line class={`line line-${n}`} x1="0" x2="30" y1="4" y2="4" />
            </svg>{' '}
            {name}: {summary(values, points, format)}
          </li>
        ))}
      </ul>
    </figure>
  );
}

function summary(values: readonly number[], points: readonly Point[], format: (value: number) => string): string {
  const highest = values.indexOf(Math.max(...values));
  const end = `${format(values.at(-1) ?? 0)} at the end (${points.at(-1)?.label ?? ''})`;
  return `${end}, at most ${format(values[highest] ?? 0)} (${points[highest]?.label ?? ''}).`;
}
