/** What follows from the outcome of an attempt. */
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import type { Waiting } from './backlog.js';
import type { Progress } from './progress.js';
import { askedPause, pauseAfter, type RetrySchedule } from './retries.js';
import type { Outcome } from './sender.js';

/** So many failures without a success, and the endpoint counts as failing. */
const FAILING = 5;
/** The longest time between two failures that count as one run: longer than any pause between attempts. */
const MOST_BETWEEN_MS = 2 * 24 * 3_600_000;

/** How the endpoint does, over all that it gets. */
export type Health = Pick<Progress, 'failures' | 'failingSince' | 'failedAt' | 'pausedUntil'>;

export const isFailing = ({ failures }: Health): boolean => failures >= FAILING;

export interface Verdict {
  readonly delivered: boolean;
  readonly health: Health;
  /** As it waits from now on; absent: it does not. */
  readonly again?: Waiting;
  readonly givenUp: boolean;
  readonly disable?: Exclude<DisabledBy, 'owner'>;
}

export interface Moment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** From 0 to 1. */
  readonly chance: number;
}

const GONE = 410;

export const isDelivered = (outcome: Outcome): boolean =>
  'status' in outcome && outcome.status >= 200 && outcome.status < 300;

export function verdictOf(
  outcome: Outcome,
  item: Waiting,
  before: Health,
  schedule: RetrySchedule,
  { now, chance }: Moment,
): Verdict {
  const paused = (before.pausedUntil ?? 0) > now ? { pausedUntil: before.pausedUntil as number } : {};
  if (isDelivered(outcome)) return { delivered: true, health: { failures: 0, ...paused }, givenUp: false };
  const gone = 'status' in outcome && outcome.status === GONE;
  // A person who tries out an endpoint sees the outcome, and asks again.
  if (item.ping !== undefined)
    return { delivered: false, health: before, givenUp: false, ...(gone ? { disable: 'gone' } : {}) };
  const asked = 'status' in outcome ? askedPause(outcome.retryAfter, now) : undefined;
  const { failures, failedAt = now } = before;
  // Where nothing was sent for days, nothing is known of them.
  const { failingSince = now } = now - failedAt > MOST_BETWEEN_MS ? {} : before;
  const health: Health = {
    failures: failures + 1,
    failingSince,
    failedAt: now,
    ...(asked === undefined ? paused : { pausedUntil: now + asked }),
  };
  const disable = gone ? 'gone' : now - failingSince >= schedule.disableMs ? 'failures' : undefined;
  const tries = item.tries + 1;
  const { firstAt = now } = item;
  const givenUp = disable === undefined && now - firstAt >= schedule.giveUpMs;
  const nextAt = Math.max(now + pauseAfter(tries, schedule, chance), health.pausedUntil ?? 0);
  return {
    delivered: false,
    health,
    givenUp,
    ...(givenUp ? {} : { again: { ...item, tries, firstAt, nextAt } }),
    ...(disable === undefined ? {} : { disable }),
  };
}
