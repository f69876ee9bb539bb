/** The body of an event, the same in pages of the feed and in webhooks (docs/api/events.md#list-events). */
import { positionText } from '../../ports/positionText.js';
import type { EntryType } from './entryTypes.js';
import type { EntryData } from './feed.js';
import type { PlacedEntry } from './feedPage.js';

export interface FeedEvent {
  readonly id: string;
  readonly type: EntryType;
  /** Time of the event: ISO 8601, UTC, milliseconds. */
  readonly created_at: string;
  /** Position of the event, in the format of `Gift-Position`. */
  readonly position: string;
  readonly data: EntryData;
}

export function feedEvent({ position, entry }: PlacedEntry, logId: string): FeedEvent {
  const { event_id: id, type, at: created_at, data } = entry;
  return { id, type, created_at, position: positionText(logId, position), data };
}
