import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../../messages/webhookAttempts.js';
import { positionText } from '../../ports/positionText.js';
import type { Records } from '../../ports/readStore.js';
import { TIME_KEY_LENGTH, timeKey } from '../../projections/timeKey.js';

/** Position of an attempt in a list, by its time: it stays one when later attempts displace the attempt. */
export const attemptPosition = ({ at, id }: Pick<WebhookAttempt, 'at' | 'id'>): string => `${timeKey(at)}.${id}`;

/** Pattern of `attemptPosition`. */
export const ATTEMPT_POSITION = `^[0-9a-z]{${TIME_KEY_LENGTH}}\\.[0-9a-f-]{36}$`;

/**
 * Stored attempts to deliver to an endpoint, the latest first.
 * @param after the position (`attemptPosition`) before which attempts are shown; absent: all
 * @throws UnavailableError
 */
export async function attemptsOf(
  records: Pick<Records, 'list'>,
  endpointId: string,
  after = '~',
): Promise<readonly WebhookAttempt[]> {
  const found = await records.list<WebhookAttempt>(attemptRecords(endpointId), MOST_ATTEMPTS);
  return found
    .map(({ value }) => value)
    .filter((one) => attemptPosition(one) < after)
    .sort((one, other) => (attemptPosition(one) > attemptPosition(other) ? -1 : 1));
}

/** An attempt as it is shown, without the receiver's answer, which is for the owner only. */
export interface AttemptRow {
  readonly id: string;
  readonly event_id: string;
  readonly position: string | null;
  readonly type: string;
  readonly at: string;
  readonly status: number | null;
  readonly error: string | null;
  readonly duration_ms: number;
  readonly next_at: string | null;
}

export function attemptRow(attempt: WebhookAttempt, logId: string): AttemptRow {
  const { id, event_id, position, type, at, status, error, duration_ms, next_at } = attempt;
  return {
    id,
    event_id,
    position: position === undefined ? null : positionText(logId, position),
    type,
    at,
    status: status ?? null,
    error: error ?? null,
    duration_ms,
    next_at: next_at ?? null,
  };
}
