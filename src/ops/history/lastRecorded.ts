import { type AccessRequest, accessStream } from '../../domain/access.js';
import type { EventStore } from '../../ports/eventStore.js';
import { streamBetween } from './streamBetween.js';

const DAY_MS = 86_400_000;

/**
 * Time of the last access record of one of these calls or commands, within so many days before `now` (milliseconds
 * since the epoch). ISO 8601, UTC; `undefined`: there is none. @throws UnavailableError
 */
export async function lastRecorded(
  events: Pick<EventStore, 'read'>,
  calls: ReadonlySet<string>,
  days: number,
  now: number,
): Promise<string | undefined> {
  for (let ago = 0; ago <= days; ago++) {
    let last: string | undefined;
    const stream = accessStream(new Date(now - ago * DAY_MS).toISOString());
    for await (const page of streamBetween(events, stream, '', undefined))
      for (const { at, data } of page) if (calls.has((data as Partial<AccessRequest>).what ?? '')) last = at;
    if (last !== undefined) return last;
  }
  return undefined;
}
