/** The progress of a rebuild, stored in a record for status and for the next builder. */
import type { Logger } from 'pino';
import type { EventStore, Position } from '../../../ports/eventStore.js';
import type { ReadStore } from '../../../ports/readStore.js';
import { positionFault, shownPosition } from '../../../ports/storedPosition.js';
import type { RunningBuild } from '../runningBuild.js';
import { shareOf } from '../../coordination/index.js';

/** Milliseconds over which the rates are measured. */
const RATE_MS = 5_000;

/** `events` counts only types that the projection folds. */
export interface RebuildProgress {
  readonly events: number;
  /** Total of the events, estimated from `share`; `undefined` at the beginning. */
  readonly total: number | undefined;
  readonly perSecond: number;
  /** The share of the log that was read, 0 to 1; `undefined`: unknown. */
  readonly share: number | undefined;
  /** Estimated seconds until the end; `undefined` while `share` does not grow. */
  readonly secondsLeft: number | undefined;
  readonly position: Position | undefined;
}

/** Number of events up to a stored checkpoint. */
interface Counted {
  readonly events: number;
  readonly position: Position;
}

interface Kept {
  readonly target: number;
  readonly progress: RebuildProgress;
  readonly stored?: Counted | undefined;
}

const keyOf = (name: string): string => `progress/${name}`;

export async function putProgress(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  target: number,
  { now, stored }: Pick<ProgressCount, 'now' | 'stored'>,
): Promise<void> {
  const counted = stored();
  await records.put(keyOf(name), {
    target,
    progress: now(),
    ...(counted === undefined ? {} : { stored: counted }),
  } satisfies Kept);
}

export async function lastProgress(
  { records }: Pick<ReadStore, 'records'>,
  name: string,
  target: number,
): Promise<Kept | undefined> {
  const kept = (await records.get<Kept>(keyOf(name)))?.value;
  return kept?.target === target ? kept : undefined;
}

export interface ProgressCount {
  /** The log; events read from here are counted. */
  readonly counted: EventStore;
  now(): RebuildProgress;
  /** The count up to the stored checkpoint. */
  stored(): Counted | undefined;
}

export interface ProgressDeps {
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
  const samples: { readonly at: number; readonly count: number; readonly share: number | undefined }[] = [
    { at: performance.now(), count, share: shareOf(position, end) },
  ];
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
    let passed = 0;
    for (const { position: reached } of coming) {
      if (build.stored === undefined || reached > build.stored) break;
      passed++;
    }
    if (passed > 0) safe = coming.splice(0, passed).at(-1);
  }

  return {
    counted: { ...events, follow },
    stored() {
      settle();
      return safe;
    },
    now() {
      const at = performance.now();
      const share = caughtUp ? 1 : shareOf(position, end);
      samples.push({ at, count, share });
      while (samples.length > 2 && at - (samples[1]?.at ?? at) > RATE_MS) samples.shift();
      const first = samples[0] ?? { at, count, share };
      const perSecond = at === first.at ? 0 : ((count - first.count) / (at - first.at)) * 1_000;
      const total = caughtUp
        ? count
        : share === undefined || share === 0
          ? undefined
          : Math.max(count, Math.round(count / share));
      const gone = share === undefined || first.share === undefined ? 0 : share - first.share;
      const secondsLeft =
        share === undefined || gone <= 0 ? undefined : ((1 - share) / gone) * ((at - first.at) / 1_000);
      return { events: count, total, perSecond, share, secondsLeft, position };
    },
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
export function foldProgress(through: Position | undefined): (read: number, position: Position) => RebuildProgress {
  const start = performance.now();
  let events = 0;
  return (read, position) => {
    events += read;
    const share = shareOf(position, through) ?? 0;
    const perSecond = (events / (performance.now() - start)) * 1_000;
    const total = share > 0 ? Math.round(events / share) : undefined;
    const secondsLeft = total === undefined ? undefined : (total - events) / perSecond;
    return { events, total, perSecond, share, secondsLeft, position };
  };
}
