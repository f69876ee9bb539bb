/**
 * Exchanges counts between processes, by one record per process (docs/limits.md#counted-together). The record of an
 * ended process counts until its windows end, so a restart does not reset the exchanged counts.
 */
import { pauseForBeats } from '../../lib/async/beats.js';
import { pause } from '../../lib/async/pause.js';
import { CLOCK_SLACK_MS } from '../../lib/clock.js';
import { randomUUID, ticks } from '../../lib/world.js';
import type { Records } from '../../ports/readStore.js';
import { UnavailableError } from '../../ports/unavailable.js';
import type { FollowerRun } from '../supervision/followers.js';
import type { SharedCounter, ExchangedCount } from './sharedCounter.js';

/** Key prefix of the records, followed by a UUID for each process; `1` is the version of the record's shape. */
const PREFIX = 'limits/1/';
const EVERY_MS = 1_000;
/** The least time between two exchanges, however fast counters grow. */
const SOONEST_MS = 100;

type Exchanged = Readonly<Record<string, readonly ExchangedCount[]>>;

/**
 * Exchanges counts until `signal` is aborted, and then sends this process's counts once more. While the records are
 * unavailable, each process counts by itself.
 * @param counters counters whose quotas have distinct names
 */
export function countExchange(
  counters: readonly SharedCounter[],
  records: Pick<Records, 'list' | 'put'>,
): (run: Pick<FollowerRun, 'signal' | 'well' | 'onTrouble'>) => Promise<void> {
  const ownKey = PREFIX + randomUUID();
  let lastSent = '';

  async function publish(): Promise<void> {
    const exchanged: Exchanged = Object.fromEntries(counters.map((counter) => [counter.quota.name, counter.publish()]));
    const ends = Object.values(exchanged).flatMap((counts) => counts.map(([, windowEndsMs]) => windowEndsMs));
    const text = JSON.stringify(exchanged);
    if (ends.length === 0 || text === lastSent) return;
    const last = ends.reduce((one, other) => Math.max(one, other));
    await records.put(ownKey, exchanged, { expiresAt: last + CLOCK_SLACK_MS });
    lastSent = text;
  }

  async function hear(): Promise<void> {
    const others = (await records.list<Exchanged>(PREFIX)).filter(({ key }) => key !== ownKey);
    for (const counter of counters) counter.hear(others.flatMap(({ value }) => value[counter.quota.name] ?? []));
  }

  return async ({ signal, well, onTrouble }) => {
    let round = new AbortController();
    const endRound = (): void => round.abort();
    signal.addEventListener('abort', endRound);
    for (const counter of counters) counter.onGrowth = endRound;
    while (!signal.aborted) {
      round = new AbortController();
      try {
        await publish();
        await hear();
        well();
      } catch (error) {
        if (!(error instanceof UnavailableError)) throw error;
        onTrouble(error);
      }
      const exchangedAt = ticks();
      await pauseForBeats(EVERY_MS, round.signal);
      await pause(Math.max(0, exchangedAt + SOONEST_MS - ticks()), signal);
    }
    await publish();
  };
}

/** A key's count in all processes, in the window that ends last: milliseconds since the epoch. */
export interface CountOfAll {
  readonly name: string;
  readonly count: number;
  readonly endsMs: number;
}

/** The exchanged counts of all processes; lower ones are not exchanged. @throws UnavailableError */
export async function exchangedCounts(records: Pick<Records, 'list'>): Promise<CountOfAll[]> {
  const found = new Map<string, CountOfAll>();
  for (const { value } of await records.list<Exchanged>(PREFIX))
    for (const [name, counts] of Object.entries(value))
      for (const [key, endsMs, count] of counts) {
        const known = found.get(`${name} ${key}`);
        if (known !== undefined && known.endsMs > endsMs) continue;
        const before = known?.endsMs === endsMs ? known.count : 0;
        found.set(`${name} ${key}`, { name, count: before + count, endsMs });
      }
  return [...found.values()];
}
