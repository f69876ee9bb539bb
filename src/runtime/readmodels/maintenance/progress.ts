/** The progress of a rebuild, stored in a record for status and for the next builder. */
import type { Logger } from 'pino';
import { inTenths } from '../../../lib/inTenths.js';
import { ticks } from '../../../lib/world.js';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import { positionFault, shownPosition } from '../../../ports/storedPosition.js';
import type { RunningBuild } from '../runningBuild.js';
import { shareOf } from '../../coordination/index.js';

/** Milliseconds over which the rates are measured. */
const RATE_MS = 5_000;

/** Progress of a fold, as status, fronts and the record show it; null: unknown. */
export interface Progress {
  /** Number of folded events, only of types that the projection folds. */
  readonly events: number;
  /** Total of the events, estimated from `share`. */
  readonly total: number | null;
  readonly per_second: number;
  /** Estimated seconds until the end; null while `share` does not grow. */
  readonly seconds_left: number | null;
  readonly position: Position | null;
  /** The share of the log that was read, 0 to 1. */
  readonly share: number | null;
}

/** Number of events up to a stored checkpoint. */
interface Counted {
  readonly events: number;
  readonly position: Position;
}

interface StoredProgress {
  /** Number of the build. */
  readonly target: number;
  readonly progress: Progress;
  readonly stored?: Counted | undefined;
}

const keyOf = (name: string): string => `progress/${name}`;

export async function putProgress(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  progress: StoredProgress,
): Promise<void> {
  await records.put(keyOf(name), progress);
}

export async function lastProgress(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  target: number,
): Promise<StoredProgress | undefined> {
  const last = (await records.get<StoredProgress>(keyOf(name)))?.value;
  return last?.target === target ? last : undefined;
}

interface ProgressCount {
  /** The log; events read from here are counted. */
  readonly counted: EventStore;
  now(): Progress;
  /** The count up to the stored checkpoint. */
  stored(): Counted | undefined;
}

interface ProgressDeps {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly logger?: Pick<Logger, 'warn'>;
}

/** Counts the progress of a build from its stored checkpoint on. */
export async function progressOf(
  { events, store, logger }: ProgressDeps,
  name: string,
  build: RunningBuild,
): Promise<ProgressCount> {
  const noted = build.stored === undefined ? undefined : await lastProgress(store, name, build.projection.version);
  let safe = noted?.stored;
  if (safe !== undefined) {
    // A count beyond the checkpoint includes events that are still to be folded.
    const fault =
      (await positionFault(events, safe.position)) ??
      (build.stored !== undefined && safe.position > build.stored ? 'lies beyond what was built' : undefined);
    if (fault !== undefined) {
      logger?.warn(
        { projection: build.checkpoint, position: shownPosition(safe.position) },
        `rebuilding: the stored position of the progress ${fault}: it counts as absent, and is counted anew`,
      );
      safe = undefined;
    }
  }
  let count = await countedTo(events, build, safe);
  let position = build.stored;
  let end = await events.end();
  let caughtUp = end === undefined || (position !== undefined && position >= end);
  const measure = meter(count, shareOf(position, end));
  const coming: Counted[] = position === undefined ? [] : [{ events: count, position }];

  const follow: EventStore['follow'] = async function* (...args) {
    for await (const batch of events.follow(...args)) {
      count += batch.events.length;
      position = batch.position;
      caughtUp = batch.caughtUp;
      coming.push({ events: count, position });
      settle();
      if (end === undefined || position > end) end = position;
      yield batch;
    }
  };

  function settle(): void {
    const { stored } = build;
    const passed = coming.findLastIndex(({ position: reached }) => stored !== undefined && reached <= stored);
    safe = coming.splice(0, passed + 1).at(-1) ?? safe;
  }

  return {
    counted: { ...events, follow },
    stored() {
      settle();
      return safe;
    },
    now: () => measure(count, caughtUp ? 1 : shareOf(position, end), position),
  };
}

/** Measures the rate of a fold over the last seconds, from its count and its share of the log. */
function meter(begunAt: number, shareBefore: number | undefined) {
  const samples = [{ at: ticks(), events: begunAt, share: shareBefore }];
  return (events: number, share: number | undefined, position: Position | undefined): Progress => {
    const at = ticks();
    samples.push({ at, events, share });
    while (samples.length > 2 && at - (samples[1]?.at ?? at) > RATE_MS) samples.shift();
    const first = samples[0] ?? { at, events, share };
    const seconds = (at - first.at) / 1_000;
    const read = share === undefined || first.share === undefined ? 0 : share - first.share;
    return {
      events,
      total: share === undefined || share === 0 ? null : Math.max(events, Math.round(events / share)),
      per_second: seconds === 0 ? 0 : Math.round((events - first.events) / seconds),
      seconds_left: share === undefined || read <= 0 ? null : inTenths(((1 - share) / read) * seconds),
      position: position ?? null,
      share: share ?? null,
    };
  };
}

async function countedTo(
  events: EventStore,
  { stored, projection: { types } }: RunningBuild,
  noted: Counted | undefined,
): Promise<number> {
  let count = noted?.events ?? 0;
  if (stored === undefined || (noted !== undefined && noted.position >= stored)) return count;
  for await (const batch of events.readAll(noted?.position, { types })) {
    for (const { position } of batch.events) if (position <= stored) count += 1;
    if (batch.position >= stored) break;
  }
  return count;
}

/** Counts the events of a fold up to `through`. @returns a function for each batch: its events and its position */
export function foldProgress(through: Position | undefined): (read: number, position: Position) => Progress {
  const measure = meter(0, 0);
  let events = 0;
  return (read, position) => measure((events += read), shareOf(position, through), position);
}
