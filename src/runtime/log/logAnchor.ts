/**
 * A read store's anchor in its log: one of the last events that were folded into it. A log that does not hold it was
 * put back to an earlier time, under its own id, and the read store was not: checkpoints stand beyond the log's end
 * then, so that purchases would be taken and neither charged, sent nor shown, and everything would look caught up.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { LOOKS } from '../../ports/storedPosition.js';

/** The key of the anchor among the records. */
export const LOG_ANCHOR = 'log/anchor';
/** Names one event for ever. */
export type LogAnchor = Pick<RecordedEvent, 'stream' | 'revision' | 'id'>;

/** The event's name. */
export function anchorOf({ stream, revision, id }: RecordedEvent): LogAnchor {
  return { stream, revision, id };
}

/** Keeps it in the place of an earlier one. @throws UnavailableError */
export async function putAnchor(records: Records, anchor: LogAnchor): Promise<void> {
  await records.put(LOG_ANCHOR, anchor);
}

/**
 * The anchor that the log does not hold; `undefined` where it does, or nobody has kept one yet. @throws
 * UnavailableError
 */
export async function lostAnchor(
  records: Pick<Records, 'get'>,
  events: Pick<EventStore, 'read'>,
): Promise<LogAnchor | undefined> {
  const anchor = (await records.get<LogAnchor>(LOG_ANCHOR))?.value;
  if (anchor === undefined) return undefined;
  for (let look = 1; ; look++) {
    const [found] = await events.read(anchor.stream, { from: anchor.revision, limit: 1 });
    if (found?.id === anchor.id) return undefined;
    if (found !== undefined || look >= LOOKS.most) return anchor;
    await sleep(LOOKS.everyMs);
  }
}
