import { attemptRecords, MOST_ATTEMPTS, type WebhookAttempt } from '../../messages/webhookAttempts.js';
import { positionText } from '../../ports/positionText.js';
import type { Records } from '../../ports/readStore.js';

/** Stored attempts to deliver to an endpoint, the latest first. @throws UnavailableError */
export async function attemptsOf(
  records: Pick<Records, 'list'>,
  endpointId: string,
): Promise<readonly WebhookAttempt[]> {
  const found = await records.list<WebhookAttempt>(attemptRecords(endpointId), MOST_ATTEMPTS);
  const orderOf = ({ at, id }: WebhookAttempt): string => `${at} ${id}`;
  return found.map(({ value }) => value).sort((one, other) => (orderOf(one) > orderOf(other) ? -1 : 1));
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
