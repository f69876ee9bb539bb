/** The message of a delivery, made again for each attempt (docs/api/webhooks.md#webhook-deliveries). */
import type { EventStore, Position } from '../ports/eventStore.js';
import { positionText } from '../ports/positionText.js';
import { entryId, type FeedDocument, type FeedEntry } from '../projections/feed/feed.js';
import type { FeedEvent } from '../projections/feed/feedEvent.js';
import type { Viewer } from '../projections/feed/feedPage.js';
import { webhookEvent } from '../projections/feed/subject.js';
import type { EndpointDocument } from '../projections/webhookEndpoints.js';
import type { ReadModel } from '../runtime/readmodels/index.js';
import type { Waiting } from './backlog.js';

export interface Message {
  readonly id: string;
  readonly type: string;
  readonly body: string;
}

const PING = 'ping';

export interface MessageDeps {
  readonly feed: Pick<ReadModel<FeedDocument>, 'get'>;
  readonly events: Pick<EventStore, 'read'>;
  readonly logId: string;
}

/** @returns `undefined` where the feed no longer has the entry. @throws UnavailableError */
export async function messageOf(
  { feed, events, logId }: MessageDeps,
  { position, ping, at }: Pick<Waiting, 'position' | 'ping' | 'at'>,
): Promise<Message | undefined> {
  if (ping !== undefined)
    return asMessage({ id: ping, type: PING, created_at: at, position: positionText(logId, position), data: {} });
  const entry = (await feed.get(entryId(position))) as FeedEntry | undefined;
  return entry === undefined ? undefined : asMessage(await webhookEvent(events, { position, entry }, logId));
}

const asMessage = (
  event: Omit<FeedEvent, 'type' | 'data'> & { readonly type: string; readonly data: object },
): Message => ({
  id: event.id,
  type: event.type,
  body: JSON.stringify(event),
});

/** Key of a feed entry: entries with the same key are delivered in the order of the log. */
const orderKey = ({ data }: Pick<FeedEntry, 'data'>): string => data.gift_id ?? data.transaction_id;

export function waitingEntry(position: Position, entry: FeedEntry): Waiting {
  return { position, key: orderKey(entry), at: entry.at, type: entry.type, tries: 0 };
}

/** Whether the endpoint gets this type of event at present. A ping has no type, and passes. */
export function isSubscribed({ types }: Pick<EndpointDocument, 'types'>, { type }: Pick<Waiting, 'type'>): boolean {
  return types === null || type === undefined || types.includes(type);
}

export function isSeenBy(viewer: Viewer, entry: FeedEntry): boolean {
  if (viewer.kind === 'client') return entry.client === viewer.clientId;
  return viewer.kind === 'merchant' && entry.merchant === viewer.merchantId;
}
