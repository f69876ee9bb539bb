/**
 * A read store's anchor in its log: one of the last events folded into it. A log without that event was put back to an
 * earlier time while the read store was not. Checkpoints stand beyond its end then: everything looks caught up, and
 * purchases would be neither charged, sent nor shown.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { EventStore, RecordedEvent } from '../../ports/eventStore.js';
import type { Records } from '../../ports/readStore.js';
import { LOOKS } from '../../ports/storedPosition.js';

export const LOG_ANCHOR = 'log/anchor';
/** Identifies one event for ever. */
export type LogAnchor = Pick<RecordedEvent, 'stream' | 'revision' | 'id'>;

export function anchorOf({ stream, revision, id }: RecordedEvent): LogAnchor {
  return { stream, revision, id };
}

/** Replaces the stored anchor. @throws UnavailableError */
export async function putAnchor(records: Records, anchor: LogAnchor): Promise<void> {
  await records.put(LOG_ANCHOR, anchor);
}

/**
 * The stored anchor where the log lacks it; `undefined` where it is there, or none is stored. @throws UnavailableError
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
