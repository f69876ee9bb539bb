/** A progress bar, only on a terminal. */
import { Presets, SingleBar } from 'cli-progress';
import { ticks } from '../lib/world.js';
import { widthOf } from '../lib/wrappedText.js';
import type { Terminal } from './terminal.js';

/** The total, or the share done (0 to 1); `undefined`: unknown. It is never a guess. */
export type Goal = number | { readonly share: number } | undefined;

export interface Progress {
  (done: number, goal: Goal, note?: string): void;
  /** Removes the bar until the next call. */
  clear(): void;
}

interface ProgressTexts {
  /** Name of the activity, such as `rebuilding gifts`. */
  readonly doing: string;
  /** Unit of the count, such as `events`. */
  readonly unit: string;
}

/** Window for which rate and remaining time are computed, ms. They are shown from `ENOUGH_MS` on. */
const WINDOW_MS = 5_000;
const ENOUGH_MS = 1_000;
/** Columns of the bar, where the terminal has room for it. */
const BAR_SIZE = { most: 24, least: 5 };

interface Sample {
  readonly at: number;
  readonly done: number;
  readonly share: number | undefined;
}

export function progressBar(stderr: Terminal['stderr'], words: ProgressTexts): Progress {
  let bar: SingleBar | undefined;
  let line = progressLine(words);
  const show = (done: number, goal: Goal, note = ''): void => {
    if (stderr.isTTY !== true) return;
    const text = line(ticks(), done, goal, { note, columns: stderr.columns });
    if (bar === undefined) {
      bar = new SingleBar(
        {
          stream: stderr as Terminal['stderr'] & NodeJS.WriteStream,
          clearOnComplete: true,
          hideCursor: false,
          fps: 10,
          noTTYOutput: false,
          gracefulExit: false,
          format: '{line}',
        },
        Presets.shades_classic,
      );
      bar.start(1, 0, { line: text });
    }
    bar.update(0, { line: text });
  };
  return Object.assign(show, {
    clear(): void {
      bar?.stop();
      bar = undefined;
      line = progressLine(words);
    },
  });
}

/** Makes the line of a progress bar. `at`: ms of a monotonic clock; `columns`: the terminal's width. */
export function progressLine(
  words: ProgressTexts,
): (
  at: number,
  done: number,
  goal: Goal,
  shown?: { readonly note?: string | undefined; readonly columns?: number | undefined },
) => string {
  const samples: Sample[] = [];
  return (at, done, goal, { note = '', columns = Number.POSITIVE_INFINITY } = {}) => {
    // The share never goes back, though the log grows.
    const share =
      goal === undefined
        ? undefined
        : Math.max(
            samples.at(-1)?.share ?? 0,
            Math.min(1, typeof goal === 'number' ? (goal === 0 ? 1 : done / goal) : goal.share),
          );
    samples.push({ at, done, share });
    while (samples.length > 2 && at - (samples[1]?.at ?? at) >= WINDOW_MS) samples.shift();
    return lineOf({ ...words, done, goal, share, note }, samples, columns);
  };
}

/** Progress bars, one after another, each for one activity. */
interface ProgressBars {
  show(doing: string, done: number, goal: Goal): void;
  clear(): void;
}

export function progressBars(stderr: Terminal['stderr']): ProgressBars {
  let now: { readonly doing: string; readonly bar: Progress } | undefined;
  return {
    show(doing, done, goal) {
      if (now?.doing !== doing) {
        now?.bar.clear();
        now = { doing, bar: progressBar(stderr, { doing, unit: 'events' }) };
      }
      now.bar(done, goal);
    },
    clear: () => now?.bar.clear(),
  };
}

interface Shown extends ProgressTexts {
  readonly done: number;
  readonly goal: Goal;
  readonly share: number | undefined;
  readonly note: string;
}

function lineOf({ doing, unit, done, goal, share, note }: Shown, samples: readonly Sample[], columns: number): string {
  const parts = [`${inWords(done)}${typeof goal === 'number' ? ` of ${inWords(goal)}` : ''} ${unit}`];
  const [first] = samples;
  const last = samples.at(-1);
  const ms = first === undefined || last === undefined ? 0 : last.at - first.at;
  if (first !== undefined && last !== undefined && ms >= ENOUGH_MS) {
    const perSecond = ((last.done - first.done) / ms) * 1_000;
    if (perSecond >= 0.5) parts.push(`${inWords(perSecond)}/s`);
    const gone = first.share === undefined || last.share === undefined ? 0 : last.share - first.share;
    if (gone > 0 && last.share !== undefined && last.share < 1)
      parts.push(`${describeTime(((1 - last.share) / gone) * ms)} left`);
  }
  if (note !== '') parts.push(note);
  if (share === undefined) return [doing, ...parts].join(' | ');
  const text = [`${Math.floor(share * 100)} %`, ...parts].join(' | ');
  const size = Math.min(BAR_SIZE.most, columns - widthOf(`${doing}  ${text}`));
  if (size < BAR_SIZE.least) return `${doing} ${text}`;
  const full = Math.floor(share * size);
  return `${doing} ${'█'.repeat(full)}${'░'.repeat(size - full)} ${text}`;
}

const inWords = (count: number): string => Math.round(count).toLocaleString('en-GB');

/** A span of time in words: `8 s`, `3 min`, `2 h 5 min`, `12 days`. */
export function describeTime(ms: number): string {
  const seconds = Math.ceil(ms / 1_000);
  if (seconds < 90) return `${seconds} s`;
  const minutes = Math.ceil(seconds / 60);
  if (minutes < 90) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}
