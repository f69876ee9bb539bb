/** Line charts as SVG. */

export interface Chart {
  readonly title: string;
  /** By name: the figure at each of the chart's x values. */
  readonly lines: Readonly<Record<string, readonly number[]>>;
}

const [WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM] = [560, 340, 70, 150, 40, 40];
const COLOURS = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#17becf'];

/** Charts one below the other, over the same x values; both axes are logarithmic. */
export function plot(xs: readonly number[], charts: readonly Chart[]): string {
  const height = charts.length * HEIGHT;
  const panels = charts.map((chart, index) => `<g transform="translate(0 ${index * HEIGHT})">${panel(xs, chart)}</g>`);
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" font-family="sans-serif" font-size="11">`,
    `<rect width="${WIDTH}" height="${height}" fill="white"/>`,
    ...panels,
    '</svg>',
    '',
  ].join('\n');
}

function panel(xs: readonly number[], { title, lines }: Chart): string {
  const values = Object.values(lines).flat();
  const x = axis(xs, LEFT, WIDTH - RIGHT);
  const y = axis([10 ** Math.floor(Math.log10(Math.min(...values))), ...values], HEIGHT - BOTTOM, TOP);
  const names = labelled(lines, y);
  return [
    `<text x="${LEFT}" y="20" font-size="13">${title}</text>`,
    ...x.ticks.map((at) => `<text x="${x.place(at)}" y="${HEIGHT - 20}" text-anchor="middle">${short(at)}</text>`),
    ...y.ticks.map(
      (at) =>
        `<path d="M${LEFT} ${y.place(at)}H${WIDTH - RIGHT}" stroke="#ddd"/>` +
        `<text x="${LEFT - 6}" y="${y.place(at) + 4}" text-anchor="end">${short(at)}</text>`,
    ),
    ...Object.values(lines).map((figures, index) => {
      const points = figures.map((figure, at) => `${x.place(xs[at] ?? 1)},${y.place(figure)}`);
      return `<polyline points="${points.join(' ')}" fill="none" stroke="${colour(index)}" stroke-width="2"/>`;
    }),
    ...names.map(
      ({ name, at, index }) => `<text x="${WIDTH - RIGHT + 8}" y="${at}" fill="${colour(index)}">${name}</text>`,
    ),
  ].join('\n');
}

const colour = (index: number): string => COLOURS[index % COLOURS.length] ?? 'black';
const short = (figure: number): string =>
  new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 3 }).format(figure);

function axis(values: readonly number[], from: number, to: number) {
  const [least, most] = [Math.log10(Math.min(...values)), Math.log10(Math.max(...values))];
  const ticks: number[] = [];
  for (let power = Math.ceil(least); power <= most; power++) ticks.push(10 ** power);
  const place = (value: number): number =>
    Math.round(from + ((Math.log10(value) - least) / (most - least || 1)) * (to - from));
  return { ticks, place };
}

/** Each line's name beside its end, no two over each other. */
function labelled(lines: Chart['lines'], { place }: { place(value: number): number }) {
  let last = 0;
  return Object.entries(lines)
    .map(([name, figures], index) => ({ name, index, end: place(figures.at(-1) ?? 1) + 4 }))
    .sort((one, other) => one.end - other.end)
    .map(({ name, index, end }) => ({ name, index, at: (last = Math.max(end, last + 13)) }));
}
