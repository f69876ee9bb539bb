import type { RefusalCode } from '../domain/errors.js';
import { Refusal } from '../domain/refusal.js';
import type { RecordedEvent } from '../ports/eventStore.js';

/**
 * Number of events of one kind in a stream: each makes every later command on it slower
 * (docs/api/limits.md#repeated-commands).
 */
const MOST_REPEATS = 50;

/**
 * Refuses one more event where the stream has `MOST_REPEATS` of this kind. The message of `code` describes what to do
 * instead.
 * @throws Refusal `code`
 */
export function refuseRepeats(
  history: readonly RecordedEvent[],
  code: Extract<RefusalCode, `${string}_too_often`>,
  counts: (event: RecordedEvent) => boolean,
): void {
  if (history.length >= MOST_REPEATS && history.filter(counts).length >= MOST_REPEATS) throw new Refusal(code);
}
