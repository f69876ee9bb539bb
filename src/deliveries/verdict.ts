/** What follows from the outcome of an attempt. */
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import { scheduled, type Waiting } from './backlog.js';
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
  /** It may be our own outage, and counts for nothing. */
  readonly ours: boolean;
  readonly disable?: Exclude<DisabledBy, 'owner'>;
}

export interface Moment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** When the attempt began. */
  readonly startedAt: number;
  /** Of any endpoint. */
  readonly lastAnswerAt?: number | undefined;
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
  moment: Moment,
): Verdict {
  const { now } = moment;
  const paused = (before.pausedUntil ?? 0) > now ? { pausedUntil: before.pausedUntil as number } : {};
  if (isDelivered(outcome)) return { delivered: true, health: { failures: 0, ...paused }, givenUp: false, ours: false };
  const gone = 'status' in outcome && outcome.status === GONE;
  const ours = isOurs(outcome, before, moment);
  // A person who tries out an endpoint sees the outcome, and asks again.
  if (item.ping !== undefined)
    return { delivered: false, health: before, givenUp: false, ours, ...(gone ? { disable: 'gone' } : {}) };
  const retry = afterFailure(item, schedule, moment);
  if (ours) {
    // The days of an event that never failed by its endpoint have not started.
    const { firstAt: _, ...unfailed } = retry.again;
    const again = item.firstAt === undefined ? unfailed : retry.again;
    return { delivered: false, health: { ...afterOutage(before, now), ...paused }, givenUp: false, ours, again };
  }
  const asked = 'status' in outcome ? askedPause(outcome.retryAfter, now) : undefined;
  const { failures } = before;
  const { failingSince = now } = runOf(before, now);
  const health: Health = {
    failures: failures + 1,
    failingSince,
    failedAt: now,
    ...(asked === undefined ? paused : { pausedUntil: now + asked }),
  };
  const disable = gone ? 'gone' : now - failingSince >= schedule.disableMs ? 'failures' : undefined;
  const givenUp = retry.givenUp && disable === undefined;
  const nextAt = Math.max(retry.again.nextAt ?? now, health.pausedUntil ?? 0);
  return {
    delivered: false,
    health,
    givenUp,
    ours,
    ...(givenUp ? {} : { again: { ...retry.again, nextAt } }),
    ...(disable === undefined ? {} : { disable }),
  };
}

/** Nothing was reached, and no endpoint has answered since this one failed before. */
function isOurs(outcome: Outcome, { failedAt = Infinity }: Health, { startedAt, lastAnswerAt = 0 }: Moment): boolean {
  return 'unreached' in outcome && lastAnswerAt <= Math.min(failedAt, startedAt);
}

/** Where nothing was sent for days, nothing is known of them. */
function runOf({ failingSince, failedAt }: Health, now: number): { readonly failingSince?: number } {
  return failingSince === undefined || now - (failedAt ?? now) > MOST_BETWEEN_MS ? {} : { failingSince };
}

/** The time since the failure before counts for nothing. */
function afterOutage(before: Health, now: number): Health {
  const { failures, failedAt = now } = before;
  const { failingSince } = runOf(before, now);
  return {
    failures: failures + 1,
    ...(failingSince === undefined ? {} : { failingSince: failingSince + now - failedAt }),
    failedAt: now,
  };
}

/** Its owner asked for the attempt before one was due. */
const isExtra = ({ asked, nextAt = 0 }: Waiting, now: number): boolean => asked === true && nextAt > now;

/** An extra attempt leaves the schedule as it is. */
function afterFailure(
  item: Waiting,
  schedule: RetrySchedule,
  { now, chance }: Moment,
): { readonly givenUp: boolean; readonly again: Waiting } {
  if (isExtra(item, now)) return { givenUp: false, again: scheduled(item) };
  const tries = item.tries + 1;
  const { firstAt = now } = item;
  const again = { ...scheduled(item), tries, firstAt, nextAt: now + pauseAfter(tries, schedule, chance) };
  return { givenUp: now - firstAt >= schedule.giveUpMs, again };
}
