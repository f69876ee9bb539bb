/** Limits that refuse callers at present, from the counts in the records: of all processes, also while none runs. */
import type { LimitName } from '../../metrics/limits.js';
import type { Records } from '../../ports/readStore.js';
import { exchangedCounts } from '../../runtime/limits/countExchange.js';
import { type DailySettings, dailyCounts } from './dailyLimits.js';
import { type LimitSettings, mostOfWindows } from './limits.js';

export interface ReachedLimit {
  readonly limit: LimitName;
  /** How many callers are refused. */
  readonly callers: number;
  /** When the last of their windows ends: ISO 8601, UTC. */
  readonly until: string;
}

interface Reached {
  callers: number;
  untilMs: number;
}

/** @param now milliseconds since the epoch, by the service's clock @throws UnavailableError */
export async function reachedLimits(
  records: Pick<Records, 'list'>,
  settings: LimitSettings & DailySettings,
  now: number,
): Promise<ReachedLimit[]> {
  const most: Partial<Record<LimitName, number>> = mostOfWindows(settings);
  const counts = [
    ...(await exchangedCounts(records)).map((one) => ({ ...one, most: most[one.name as LimitName] ?? 0 })),
    ...(await dailyCounts(records, settings)),
  ];
  const found = new Map<string, Reached>();
  for (const { name, count, endsMs, most: limit } of counts) {
    if (limit === 0 || count < limit || endsMs <= now) continue;
    const { callers, untilMs } = found.get(name) ?? { callers: 0, untilMs: 0 };
    found.set(name, { callers: callers + 1, untilMs: Math.max(untilMs, endsMs) });
  }
  return [...found].map(([limit, { callers, untilMs }]) => ({
    limit: limit as LimitName,
    callers,
    until: new Date(untilMs).toISOString(),
  }));
}
