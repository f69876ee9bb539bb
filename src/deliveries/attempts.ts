/** The attempts that the owner of an endpoint can look at: the latest that succeeded, and the latest that failed. */
import { randomUUID } from 'node:crypto';
import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../messages/webhookAttempts.js';
import type { Records } from '../ports/readStore.js';
import type { Attempted } from './attempt.js';
import type { Waiting } from './backlog.js';
import type { Progress } from './progress.js';
import { isDelivered, type Verdict } from './verdict.js';

const KEPT_MS = 30 * 24 * 3_600_000;
/** Of each kind, so that a busy endpoint's successes leave its failures to be seen. */
const MOST_OF_KIND = MOST_ATTEMPTS / 2;

export interface NotedAttempt extends Attempted {
  readonly item: Waiting;
  /** Milliseconds since the epoch; absent: it is not tried again. */
  readonly nextAt?: number | undefined;
  readonly ours: Verdict['ours'];
}

/** An outage of ours, as far as is known. */
const OURS = 'no endpoint has answered meanwhile, so this does not count against yours';

/** Replaces the oldest of its kind. @param before attempts so far, of both kinds @throws UnavailableError */
export async function noteAttempt(
  records: Records,
  endpointId: string,
  attempt: NotedAttempt,
  before: Progress['attempts'],
): Promise<void> {
  const place = isDelivered(attempt.outcome)
    ? `d${before.delivered % MOST_OF_KIND}`
    : `f${before.failed % MOST_OF_KIND}`;
  await records.put(attemptRecords(endpointId) + place, shown(attempt), {
    expiresAt: Date.parse(attempt.at) + KEPT_MS,
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
