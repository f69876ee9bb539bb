/** The attempts that are shown to the owner of an endpoint: the latest that succeeded, and the latest that failed. */
import { randomUUID } from '../lib/world.js';
import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../messages/webhookAttempts.js';
import type { Records } from '../ports/readStore.js';
import type { Attempted } from './attempt.js';
import type { Waiting } from './backlog.js';
import type { Progress } from './progress.js';
import { isDelivered, type Verdict } from './verdict.js';

const RETAINED_MS = 30 * 24 * 3_600_000;
/** Attempts stored of each kind, so that a busy endpoint's successes do not displace its failures. */
const MOST_OF_KIND = MOST_ATTEMPTS / 2;

interface NotedAttempt extends Attempted {
  readonly item: Waiting;
  /** Time of the next attempt, milliseconds since the epoch; absent: there is none. */
  readonly nextAt?: number | undefined;
  readonly ours: Verdict['ours'];
}

/** Note for the endpoint's owner on a failure that is probably our own outage. */
const OURS = 'no endpoint has answered meanwhile, so this does not count against yours';

/**
 * Stores an attempt in place of the oldest of its kind.
 * @param before counts of earlier attempts, of both kinds
 * @throws UnavailableError
 */
export async function noteAttempt(
  records: Records,
  endpointId: string,
  attempt: NotedAttempt,
  before: Progress['attempts'],
): Promise<void> {
  const suffix = isDelivered(attempt.outcome)
    ? `d${before.delivered % MOST_OF_KIND}`
    : `f${before.failed % MOST_OF_KIND}`;
  await records.put(attemptRecords(endpointId) + suffix, shown(attempt), {
    expiresAt: Date.parse(attempt.at) + RETAINED_MS,
  });
}

function shown({ message, at, outcome, durationMs, item, nextAt, ours }: NotedAttempt): WebhookAttempt {
  const answer =
    'status' in outcome
      ? { status: outcome.status, response: outcome.response }
      : { error: ours ? `${outcome.error}; ${OURS}` : outcome.error, response: '' };
  return {
    id: randomUUID(),
    event_id: message.id,
    type: message.type,
    at,
    duration_ms: durationMs,
    ...answer,
    ...(item.ping === undefined ? { position: item.position, about: item.key } : {}),
    ...(nextAt === undefined ? {} : { next_at: new Date(nextAt).toISOString() }),
  };
}
