/**
 * The anchor of a read store is one of the last events folded into it. A log without that event was restored to an
 * earlier time, and the read store was not. Its checkpoints would lie beyond the log's end: everything would look
 * caught up, and purchases would be neither charged, sent nor shown.
 */
import { sleep } from '../../lib/world.js';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { LOOKS } from '../../ports/storedPosition.js';

export const LOG_ANCHOR = 'log/anchor';
export type LogAnchor = Pick<RecordedEvent, 'stream' | 'revision' | 'id'>;

export function anchorOf({ stream, revision, id }: RecordedEvent): LogAnchor {
  return { stream, revision, id };
}

export async function putAnchor(records: Records, anchor: LogAnchor): Promise<void> {
  await records.put(LOG_ANCHOR, anchor);
}

/** Checks that the log has the event of the anchor. @returns the anchor if the log lacks its event */
export async function lostAnchor(
  records: Pick<Records, 'get'>,
  events: Pick<EventStore, 'read'>,
): Promise<LogAnchor | undefined> {
  const anchor = (await records.get<LogAnchor>(LOG_ANCHOR))?.value;
  if (anchor === undefined) return undefined;
  for (let attempt = 1; ; attempt++) {
    const [found] = await events.read(anchor.stream, { from: anchor.revision, limit: 1 });
    if (found?.id === anchor.id) return undefined;
    if (found !== undefined || attempt >= LOOKS.most) return anchor;
    await sleep(LOOKS.everyMs);
  }
}
