/** How far a rebuild has come: counted while it runs, and told in a record, so that it can be seen from anywhere and is known when it goes on. */
import type { EventStore, Position } from '../ports/eventStore.js';
import type { ReadStore } from '../ports/readStore.js';
import type { Unit } from './unit.js';

/** Rates are of the last so many ms. */
const RATE_MS = 5_000;

/** How far a rebuild has come. Events are those that the projection folds. */
export interface RebuildProgress {
  readonly events: number;
  /** Of so many, as far as can be told from how much of the log has been read; `undefined` at the beginning. */
  readonly total: number | undefined;
  readonly perSecond: number;
  /** At that rate; `undefined` while there is none. */
  readonly secondsLeft: number | undefined;
  readonly position: Position | undefined;
}

/** What is kept of it. */
interface Kept {
  readonly target: number;
  readonly progress: RebuildProgress;
  /** When it was told, in ms since the epoch. */
  readonly at: number;
}

const keyOf = (name: string): string => `progress/${name}`;

/** Tells how far it is. @throws UnavailableError */
export async function tellProgress({ records }: Pick<ReadStore, 'records'>, name: string, target: number, progress: RebuildProgress): Promise<void> {
  await records.put(keyOf(name), { target, progress, at: Date.now() } satisfies Kept);
}

/** What was told last of the build of that number; `at`: ms since the epoch. @throws UnavailableError */
export async function toldProgress({ records }: Pick<ReadStore, 'records'>, name: string, target: number): Promise<{ readonly progress: RebuildProgress; readonly at: number } | undefined> {
  const kept = (await records.get<Kept>(keyOf(name)))?.value;
  return kept?.target === target ? kept : undefined;
}

/** Counts what a feed of `events` brings. */
export async function progressOf({ events, store }: { readonly events: EventStore; readonly store: ReadStore }, name: string, unit: Unit): Promise<{ readonly counted: EventStore; now(): RebuildProgress }> {
  const told = unit.stored === undefined ? undefined : await toldProgress(store, name, unit.projection.version);
  let count = told?.progress.events ?? 0;
  let position = unit.stored;
  let end = await events.end();
  let caughtUp = end === undefined || (position !== undefined && position >= end);
  const samples: { readonly at: number; readonly count: number }[] = [{ at: performance.now(), count }];

  const follow: EventStore['follow'] = async function* (...args) {
    for await (const batch of events.follow(...args)) {
      count += batch.events.length;
      position = batch.position;
      caughtUp = batch.caughtUp;
      if (end === undefined || position > end) end = position;
      yield batch;
    }
  };

  return {
    counted: { ...events, follow },
    now() {
      const at = performance.now();
      samples.push({ at, count });
      while (samples.length > 2 && at - (samples[1]?.at ?? at) > RATE_MS) samples.shift();
      const first = samples[0] ?? { at, count };
      const perSecond = at === first.at ? 0 : ((count - first.count) / (at - first.at)) * 1_000;
      const share = shareOf(position, end);
      const total = caughtUp ? count : share === undefined || share === 0 ? undefined : Math.max(count, Math.round(count / share));
      const secondsLeft = total === undefined || perSecond === 0 ? undefined : (total - count) / perSecond;
      return { events: count, total, perSecond, secondsLeft, position };
    },
  };
}

/** Positions of every engine are decimal numbers that grow evenly enough to show how far one is; nothing else may depend on that. */
export function shareOf(position: Position | undefined, end: Position | undefined): number | undefined {
  if (end === undefined) return 1;
  if (position === undefined) return 0;
  const share = Number(position) / Number(end);
  return Number.isFinite(share) ? Math.min(1, share) : undefined;
}
