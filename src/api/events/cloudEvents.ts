/** Events as CloudEvents 1.0, in the JSON batch format (docs/api/events.md#cloudevents). */
import type { FeedEvent } from '../../projections/feed/feedEvent.js';
import type { Schema } from '../pipeline/route.js';
import { entity, listSchema, textSchema } from '../pipeline/schemas.js';
import { eventExample, eventFields, eventSchema } from './schemas.js';

export const CLOUD_EVENTS = 'application/cloudevents-batch+json';

const TEXT = textSchema();

export const cloudEventSchema = entity('CloudEvent', {
  specversion: { ...TEXT, const: '1.0' },
  id: eventFields.id,
  source: textSchema('The address of the feed, the same in all events of it.', { format: 'uri-reference' }),
  type: eventFields.type,
  subject: textSchema('The id of the gift; of a purchase, where the event is of no gift.'),
  time: eventFields.created_at,
  datacontenttype: { ...TEXT, const: 'application/json' },
  position: eventFields.position,
  data: (eventSchema['properties'] as { readonly data: Schema }).data,
});

export const cloudEventsSchema = { title: 'CloudEventBatch', ...listSchema(cloudEventSchema) };

/** @param publicUrl how callers reach the service */
export const cloudEvent = (
  { id, type, created_at, position, data }: FeedEvent,
  publicUrl: string,
): Readonly<Record<string, unknown>> => ({
  specversion: '1.0',
  id,
  source: `${publicUrl}/api/v2/events`,
  type,
  subject: data.gift_id ?? data.transaction_id,
  time: created_at,
  datacontenttype: 'application/json',
  position,
  data,
});

export const cloudEventExample = cloudEvent(eventExample as FeedEvent, 'https://gifts.example');
