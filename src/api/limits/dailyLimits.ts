/**
 * Limits on the work of one user of support (docs/limits.md#support), or one owner of webhook endpoints, in 24 hours.
 */
import RateLimiterRes from 'rate-limiter-flexible/lib/RateLimiterRes.js';
import { MOST_CREATED_A_DAY } from '../../domain/webhookEndpoint.js';
import { clockMs } from '../../lib/clock.js';
import type { LimitName, LimitTally } from '../../metrics/limits.js';
import type { Records } from '../../ports/readStore.js';
import { type CountOfAll } from '../../runtime/limits/countExchange.js';
import { type Count, RecordsLimiter } from '../../runtime/limits/recordsLimiter.js';
import { tooManyRequests } from '../auth/throttle.js';

const DAY_SECONDS = 86_400;
/** Key prefix of the records, followed by the limit's name. */
const PREFIX = 'daily/';

export type DailyLimit = Extract<
  LimitName,
  'erasures' | 'person-exports' | 'personal-reads' | 'support-replacements' | 'support-reversals' | 'webhook-endpoints'
>;

/** Limits in 24 hours for each user of support; 0: no limit. */
export interface DailySettings {
  readonly erasuresPerDay: number;
  readonly personExportsPerDay: number;
  readonly personalReadsPerDay: number;
  readonly replacementsPerDay: number;
  readonly reversalsPerDay: number;
}

/**
 * Counts one piece of work before it is done, by a user's id or an owner's name.
 * @throws HttpError `too_many_requests`, with Retry-After; UnavailableError
 */
export type TakeDaily = (limit: DailyLimit, who: string) => Promise<void>;

/** Counters in the records, which all processes share, so that neither a restart nor another process resets them. */
export function dailyLimits(
  records: Records,
  settings: DailySettings,
  onLimited: LimitTally = () => undefined,
  now: () => number = clockMs,
): TakeDaily {
  const limiters = Object.entries(mostOf(settings)).map(([name, points]) => [
    name,
    points === 0
      ? undefined
      : new RecordsLimiter({ records, now, keyPrefix: PREFIX + name, points, duration: DAY_SECONDS }),
  ]);
  const limiterOf = Object.fromEntries(limiters) as Readonly<Record<DailyLimit, RecordsLimiter | undefined>>;
  return async (limit, who) => {
    try {
      await limiterOf[limit]?.consume(who);
    } catch (error) {
      if (!(error instanceof RateLimiterRes)) throw error;
      onLimited(limit);
      throw tooManyRequests(error.msBeforeNext);
    }
  };
}

const mostOf = ({
  erasuresPerDay,
  personExportsPerDay,
  personalReadsPerDay,
  replacementsPerDay,
  reversalsPerDay,
}: DailySettings): Readonly<Record<DailyLimit, number>> => ({
  erasures: erasuresPerDay,
  'person-exports': personExportsPerDay,
  'personal-reads': personalReadsPerDay,
  'support-replacements': replacementsPerDay,
  'support-reversals': reversalsPerDay,
  'webhook-endpoints': MOST_CREATED_A_DAY,
});

/** The counts of all users and owners, each with its limit. @throws UnavailableError */
export async function dailyCounts(
  records: Pick<Records, 'list'>,
  settings: DailySettings,
): Promise<(CountOfAll & { readonly most: number })[]> {
  const all = await Promise.all(
    Object.entries(mostOf(settings)).map(async ([name, most]) =>
      (await records.list<Count>(`${PREFIX}${name}:`)).map(({ value }) => ({
        name,
        count: value.points,
        endsMs: value.expire,
        most,
      })),
    ),
  );
  return all.flat();
}
