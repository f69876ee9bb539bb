/** What read models and process managers have in common on their pages. */
import type { LastHolder, StatusEntry } from '../../src/ops/status/status.js';
import type { Sample } from '../service/readModels.js';
import { Plot, type Series } from './plot.js';
import { count, duration, Time } from './text.js';

type Progressing = Exclude<StatusEntry, { readonly kind: 'part' }>;
type Lag = Pick<Progressing, 'lag_events' | 'lag_exact' | 'lag_seconds'>;

export const lagEvents = ({ lag_events, lag_exact }: Lag): string =>
  `${lag_exact ? '' : 'at least '}${count(lag_events)}`;

export const lagSeconds = ({ lag_seconds }: Lag): string => (lag_seconds === null ? 'unknown' : duration(lag_seconds));

export const buildName = ({ version, build }: { readonly version: number; readonly build: number }): string =>
  build === 0 ? `version ${version}` : `version ${version}, build ${build}`;

const LIVES = { true: 'still alive', false: 'gone' } as const;

/** The process that works on it, else the last one. */
export function Holder({ of: { holder, last_holder } }: { readonly of: Pick<Progressing, 'holder' | 'last_holder'> }) {
  if (holder !== null) return <span class="id">{holder}</span>;
  return last_holder === null ? <>nobody</> : <LastOf holder={last_holder} />;
}

function LastOf({ holder: { process, since, lives } }: { readonly holder: LastHolder }) {
  return (
    <>
      nobody; the last was <span class="id">{process}</span>
      {since === null ? null : (
        <>
          , heard of <Time at={since} />
        </>
      )}
      {lives === null ? null : `, ${LIVES[String(lives) as keyof typeof LIVES]}`}
    </>
  );
}

interface RequestedByProps {
  readonly by: string;
  readonly at: string;
  readonly reason: string | null;
}

export function RequestedBy({ by, at, reason }: RequestedByProps) {
  return (
    <p>
      Requested by <bdi>{by}</bdi>, <Time at={at} />
      {reason === null ? null : (
        <>
          : <q>{reason}</q>
        </>
      )}
    </p>
  );
}

const CLOCK = new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium' });

interface RatesProps {
  readonly samples: readonly Sample[];
  /** Name of each value of a sample. */
  readonly names: readonly string[];
}

export function Rates({ samples, names }: RatesProps) {
  const series: Series[] = names.map((name, n) => ({ name, values: samples.map(({ values }) => values[n] ?? 0) }));
  return (
    <Plot
      caption="Events a second, since this page was opened"
      series={series}
      points={samples.map(({ at }) => ({ at, label: CLOCK.format(at) }))}
      format={count}
    />
  );
}
