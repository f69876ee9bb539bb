/** Decides from an attempt's outcome whether the event waits on, and whether the endpoint fails or is disabled. */
import type { DisabledBy } from '../domain/webhookEndpoint.js';
import { scheduled, untried, type Waiting } from './backlog.js';
import type { Progress } from './progress.js';
import { isWaitedFor, requestedPause, pauseAfter, type RetrySchedule } from './retries.js';
import type { Outcome } from './sender.js';

/** Number of failures without a success from which an endpoint counts as failing. */
const FAILING = 5;
/** The longest time between two failures that count as one run: longer than any pause between attempts. */
const MOST_BETWEEN_MS = 2 * 24 * 3_600_000;

/** The endpoint's record of failures, over all events sent to it. */
export type Health = Pick<Progress, 'failures' | 'failingSince' | 'failedAt' | 'pausedUntil'>;

export const isFailing = ({ failures }: Health): boolean => failures >= FAILING;

export interface Verdict {
  readonly delivered: boolean;
  readonly health: Health;
  /** The event as it waits from now on; absent: it no longer waits. */
  readonly again?: Waiting;
  readonly abandoned: boolean;
  /** The failure may be our own outage, and does not count against the endpoint or the event. */
  readonly ours: boolean;
  readonly disable?: Exclude<DisabledBy, 'owner'>;
}

interface Moment {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** When the attempt began. */
  readonly startedAt: number;
  /** Time of the last answer of any endpoint, milliseconds since the epoch. */
  readonly lastAnswerAt?: number | undefined;
  /** Random number from 0 to 1. */
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
  const { pausedUntil = 0 } = before;
  const paused = isWaitedFor(pausedUntil, now) ? { pausedUntil } : {};
  if (isDelivered(outcome))
    return { delivered: true, health: { failures: 0, ...paused }, abandoned: false, ours: false };
  const gone = 'status' in outcome && outcome.status === GONE;
  const ours = isOurs(outcome, before, moment);
  // A failed ping is not retried: the person who requested it sees the outcome and can request another.
  if (item.ping !== undefined)
    return { delivered: false, health: before, abandoned: false, ours, ...(gone ? { disable: 'gone' } : {}) };
  const retry = afterFailure(item, schedule, moment);
  if (ours) {
    // The time until abandonment starts only with the first failure that is the endpoint's own.
    const { firstAt: _, ...unfailed } = retry.again;
    const again = item.firstAt === undefined ? unfailed : retry.again;
    return { delivered: false, health: { ...afterOutage(before, now), ...paused }, abandoned: false, ours, again };
  }
  const requested = 'status' in outcome ? requestedPause(outcome.retryAfter, now) : undefined;
  const { failures } = before;
  const { failingSince = now } = runOf(before, now);
  const health: Health = {
    failures: failures + 1,
    failingSince,
    failedAt: now,
    ...(requested === undefined ? paused : { pausedUntil: now + requested }),
  };
  const disable = gone ? 'gone' : now - failingSince >= schedule.disableMs ? 'failures' : undefined;
  const abandoned = retry.abandoned && disable === undefined;
  const nextAt = Math.max(retry.again.nextAt ?? now, health.pausedUntil ?? 0);
  return {
    delivered: false,
    health,
    abandoned,
    ours,
    ...(abandoned ? {} : { again: { ...retry.again, nextAt } }),
    ...(disable === undefined ? {} : { disable }),
  };
}

/** The verdict on a failure at an earlier URL: it counts against neither the endpoint nor the event. */
export function failedElsewhere(item: Waiting, health: Health, now: number): Verdict {
  return { delivered: false, health, again: { ...untried(item), nextAt: now }, abandoned: false, ours: false };
}

/** Whether no connection was made, and no endpoint has answered since this one's previous failure. */
function isOurs(outcome: Outcome, { failedAt = Infinity }: Health, { startedAt, lastAnswerAt = 0 }: Moment): boolean {
  return 'unreached' in outcome && lastAnswerAt <= Math.min(failedAt, startedAt);
}

/** The present run of failures; empty where the last failure is so long ago that the endpoint may have recovered. */
function runOf({ failingSince, failedAt }: Health, now: number): { readonly failingSince?: number } {
  return failingSince === undefined || now - (failedAt ?? now) > MOST_BETWEEN_MS ? {} : { failingSince };
}

/** Shifts the run of failures, so that the time of an outage of ours does not count towards disabling the endpoint. */
function afterOutage(before: Health, now: number): Health {
  const { failures, failedAt = now } = before;
  const { failingSince } = runOf(before, now);
  return {
    failures: failures + 1,
    ...(failingSince === undefined ? {} : { failingSince: failingSince + now - failedAt }),
    failedAt: now,
  };
}

/** Whether the owner requested the attempt before one was due. */
const isExtra = ({ requested, nextAt = 0 }: Waiting, now: number): boolean => requested === true && nextAt > now;

/** An extra attempt leaves the schedule as it is. */
function afterFailure(
  item: Waiting,
  schedule: RetrySchedule,
  { now, chance }: Moment,
): { readonly abandoned: boolean; readonly again: Waiting } {
  if (isExtra(item, now)) return { abandoned: false, again: scheduled(item) };
  const tries = item.tries + 1;
  const { firstAt = now } = item;
  const again = { ...scheduled(item), tries, firstAt, nextAt: now + pauseAfter(tries, schedule, chance) };
  return { abandoned: now - firstAt >= schedule.giveUpMs, again };
}
