/**
 * Metrics of the state that all processes share, read from the engines at most once a second. Any process shows them,
 * also when the leader is dead.
 */
import { within } from '../lib/async/within.js';
import { ticks } from '../lib/world.js';
import type { Engines } from '../ports/engines.js';
import type { KeyStore } from '../ports/keyStore.js';
import { FEED_TYPES } from '../processors/managers.js';
import type { ProcessStatus } from '../processors/runner/index.js';
import { buildOf, listQuarantined, type Projection } from '../runtime/readmodels/index.js';
import { lagBehind } from '../runtime/log/lag.js';
import type { Exposition, MetricText, Sample } from './exposition.js';
import { buildPosition, logProgress, modelBuilds } from '../ops/status/buildStatus.js';
import { parkedWork } from '../ops/status/parkedWork.js';

const FRESH_MS = 1_000;
/** Milliseconds after which an engine's value is left out. */
const DEADLINE_MS = 1_500;

interface StateOptions {
  readonly engines: Engines;
  readonly keyStore: Pick<KeyStore, 'engine' | 'ping'>;
  readonly projections: readonly Projection[];
  readonly processes: () => ProcessStatus | undefined;
}

type Found = Readonly<Record<keyof typeof TEXTS, readonly Sample[]>>;

const TEXTS = {
  up: { name: 'gift_engine_up', help: 'Whether an engine answers: 1 or 0', labels: ['part', 'engine'] },
  lagSeconds: {
    name: 'gift_projection_lag_seconds',
    help: 'Age of the oldest event that a projection has not stored, against the end of the log',
    labels: ['projection', 'version'],
  },
  lagEvents: {
    name: 'gift_projection_lag_events',
    help: 'Events that a projection has not stored; counted up to 10000',
    labels: ['projection', 'version'],
  },
  active: {
    name: 'gift_projection_active',
    help: 'Whether readers use this version of a projection: 1 or 0',
    labels: ['projection', 'version'],
  },
  quarantined: {
    name: 'gift_quarantined_documents',
    help: 'Documents out of service since they could not be folded',
    labels: ['projection', 'version'],
  },
  parked: {
    name: 'gift_parked_work',
    help: 'Work that process managers gave up and support has not seen to',
    labels: ['process'],
  },
  processLag: {
    name: 'gift_process_lag_seconds',
    help: 'Age of the oldest event that the process managers have not looked at; shown by the process that leads',
  },
} as const satisfies Record<string, MetricText>;

export function showState(show: Exposition, { engines, keyStore, projections, processes }: StateOptions): void {
  const { events, store, bus } = engines;
  const parked = parkedWork(events);

  const answers = async ([part, one]: readonly [
    string,
    { readonly engine: string; ping(): Promise<void> },
  ]): Promise<Sample> => {
    const up = await orElse(
      one.ping().then(() => 1),
      0,
    );
    return [[part, one.engine], up];
  };

  const buildSamples = async ({ name, types }: Projection, number: number, active: number | undefined) => {
    const [stored, quarantined] = await Promise.all([
      buildPosition(engines, name, number),
      listQuarantined(store.records, { name, version: number }),
    ]);
    return {
      labels: [name, String(buildOf(number).version)],
      progress: await logProgress(events, stored, types),
      active: active === number ? 1 : 0,
      quarantined: quarantined.length,
    };
  };

  /** Samples of the build of this program's version, and of the active build of another release. */
  const projectionSamples = (projection: Projection) => {
    const builds = modelBuilds(store, projection);
    return [
      builds.then(async ({ active, own }) => buildSamples(projection, own, active)),
      builds.then(async ({ active, other }) =>
        other === undefined ? undefined : buildSamples(projection, other, active),
      ),
    ];
  };

  const processLag = async (): Promise<readonly Sample[]> => {
    const status = processes();
    if (status?.leading !== true) return [];
    const { seconds } = await lagBehind(events, status.position, FEED_TYPES);
    return seconds === undefined ? [] : [[[], seconds]];
  };

  const read = async (): Promise<Found> => {
    const parts = [
      ['event store', events],
      ['read store', store],
      ['bus', bus],
      ['key store', keyStore],
    ] as const;
    const [up, states, waiting, lag] = await Promise.all([
      Promise.all(parts.map(answers)),
      // A value that can't be measured is left out, not shown as healthy; `up` says why.
      Promise.all(projections.flatMap((one) => projectionSamples(one).map((samples) => orElse(samples, undefined)))),
      orElse(parked(), new Map<string, number>()),
      orElse(processLag(), []),
    ]);
    const known = states.filter((state) => state !== undefined);
    return {
      up,
      lagSeconds: known.flatMap(({ labels, progress: { lag_seconds: seconds } }): Sample[] =>
        seconds === null ? [] : [[labels, seconds]],
      ),
      lagEvents: known.flatMap(({ labels, progress: { lag_seconds: seconds, lag_events: count } }): Sample[] =>
        seconds === null ? [] : [[labels, count]],
      ),
      active: known.map(({ labels, active }) => [labels, active]),
      quarantined: known.map(({ labels, quarantined }) => [labels, quarantined]),
      parked: [...waiting].map(([name, count]) => [[name], count]),
      processLag: lag,
    };
  };

  let last: { readonly at: number; readonly found: Promise<Found> } | undefined;
  const recent = (): Promise<Found> => {
    if (last === undefined || ticks() - last.at > FRESH_MS) last = { at: ticks(), found: read() };
    return last.found;
  };
  for (const key of Object.keys(TEXTS) as (keyof typeof TEXTS)[])
    show.gauge(TEXTS[key], async () => (await recent())[key]);
}

async function orElse<T, O>(work: Promise<T>, otherwise: O): Promise<T | O> {
  return within(
    work.catch(() => otherwise),
    DEADLINE_MS,
    () => otherwise,
  );
}
