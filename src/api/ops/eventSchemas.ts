/** Schemas of shown events (docs/support.md#shown-events). */
import type { EventView } from '../../ops/history/eventView.js';
import type { Schema } from '../pipeline/route.js';
import { countSchema, entity, listSchema, orNull, textSchema, timeSchema } from '../pipeline/schemas.js';

export const callerSchema: Schema = {
  title: 'Caller',
  type: 'object',
  additionalProperties: false,
  properties: {
    user: textSchema("A user's id, `cli:<system user>@<host>`, or the part of the service that acted."),
    client: textSchema('The client that the user was signed in with.'),
    roles: listSchema(textSchema(), "The user's roles and permissions at that time."),
  },
};

export const eventSchema = entity('Event', {
  position: textSchema('The position in the log: greater for a later event, compared byte by byte.'),
  stream: textSchema(),
  revision: countSchema('The index in the stream, from 0.'),
  type: textSchema(),
  id: textSchema(),
  at: timeSchema(),
  by: callerSchema,
  request_id: orNull(textSchema('The request that caused it: `X-Request-Id`.')),
  command_id: textSchema('The command that appended it.'),
  causation_id: orNull(textSchema('The event that caused it.')),
  correlation_id: textSchema('The same for all events that follow from one request.'),
  data: {
    type: 'object',
    additionalProperties: true,
    description: 'Without secret fields; personal ones are `***` unless asked for.',
  },
});

export const eventExample: EventView = {
  position: '0000000000001042',
  stream: 'gift-5f2c9d6a1b7e4c80d3a1',
  revision: 1,
  type: 'GiftRedeemed',
  id: '2f0b7a52-6c0e-4b1f-9a40-0c7d1f6e8b11',
  at: '2026-05-04T12:30:00.000Z',
  by: { user: 'till-4', client: 'pos', roles: ['redeem', 'unredeem'] },
  request_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
  command_id: 'c0a9e1f2b3',
  causation_id: null,
  correlation_id: '0f8fad5b-d9cb-469f-a165-70867728950e',
  data: {
    redemption_id: '19df2f781409c1e5b7a2d4f60813e5a',
    location_id: 'store-7',
    location_merchant_id: 'm1',
    merchant_id: 'm1',
    brand_id: 'b1',
    product_id: 'p1',
    value: 350,
  },
};
