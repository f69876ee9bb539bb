/** The status of read models, and of the work on them (docs/read-models.md). */
import { useEffect, useState } from 'preact/hooks';
import type { ReadModelStatus, StatusEntry } from '../../src/ops/status/status.js';
import type { Order } from '../../src/runtime/readmodels/index.js';
import { Failed, get } from './call.js';
import { type Loaded, useLoaded } from './loaded.js';

/** How often a status is requested, ms: while work is in progress, and else. */
const BUSY_MS = 1_000;
const IDLE_MS = 5_000;

export type Task<K extends Order['kind']> = Pick<
  Order<K>,
  'state' | 'by' | 'reason' | 'at' | 'told_at' | 'progress' | 'result' | 'failure'
>;

export interface LastTask<K extends Order['kind']> {
  /** `undefined`: none was requested in the last week, or the user may not see it. */
  readonly task: Task<K> | undefined;
}

interface Answer<T> {
  readonly data: T;
}

export const projectionPath = (name: string): string => `ops/projections/${encodeURIComponent(name)}`;

export const allStatus = async (signal: AbortSignal): Promise<readonly StatusEntry[]> =>
  (await get<Answer<readonly StatusEntry[]>>('ops/projections', { signal })).data;

export const statusOf = async (name: string, signal: AbortSignal): Promise<ReadModelStatus> =>
  (await get<Answer<ReadModelStatus>>(projectionPath(name), { signal })).data;

/** The last work of a kind. */
export function useTask<K extends Order['kind']>(name: string, kind: K, may: boolean): Loaded<LastTask<K>> {
  return useLoaded(
    async (signal) => {
      if (!may) return { task: undefined };
      try {
        return { task: (await get<Answer<Task<K>>>(`${projectionPath(name)}/${kind}`, { signal })).data };
      } catch (error) {
        if (error instanceof Failed && error.status === 404) return { task: undefined };
        throw error;
      }
    },
    [name, kind],
    { everyMs: (latest) => taskEveryMs(latest?.task?.state) },
  );
}

/** Another process goes on with interrupted work. What has ended is not polled: results are records of their own. */
function taskEveryMs(state: Task<Order['kind']>['state'] | undefined): number | undefined {
  if (state === 'running') return BUSY_MS;
  return state === 'interrupted' ? IDLE_MS : undefined;
}

const isBusy = (one: StatusEntry): boolean =>
  one.kind === 'projection' && (one.rebuild !== null || one.served !== null || !one.in_use || one.lag_events > 0);

export const statusEveryMs = (entries: readonly StatusEntry[] = []): number =>
  entries.some(isBusy) ? BUSY_MS : IDLE_MS;

export interface Sample {
  readonly at: number;
  readonly values: readonly number[];
}

/** Above so many samples every other one is dropped: the plot is some hundred dots wide. */
const MAX_SAMPLES = 600;

/** Samples of what a page polls, since the page was opened. @param of a value of its own for each poll */
export function useSamples<T>(of: T | undefined, read: (value: T) => readonly number[]): readonly Sample[] {
  const [samples, set] = useState<readonly Sample[]>([]);
  useEffect(() => {
    if (of === undefined) return;
    const next = { at: Date.now(), values: read(of) };
    set((before) => [...(before.length < MAX_SAMPLES ? before : before.filter((_, n) => n % 2 === 0)), next]);
  }, [of]);
  return samples;
}
