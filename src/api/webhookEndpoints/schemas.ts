import { type DisabledBy, LONGEST_DESCRIPTION } from '../../domain/webhookEndpoint.js';
import { DECEIVING } from '../../lib/unicodeText.js';
import { LONGEST_URL } from '../../domain/webhookUrl.js';
import { ALL_ENTRY_TYPES } from '../../projections/feed/entryTypes.js';
import type { EndpointRow } from '../../ops/webhooks/webhookRows.js';
import type { Schema } from '../pipeline/route.js';
import {
  choiceSchema,
  entity,
  flagSchema,
  integerSchema,
  orNull,
  textSchema,
  timeSchema,
} from '../pipeline/schemas.js';

const TYPES = {
  type: ['array', 'null'],
  items: {
    type: 'string',
    enum: ALL_ENTRY_TYPES,
    // An error message that lists all types would be too long.
    'x-errors': { enum: 'types: not a type of event; /openapi.json lists them' },
  },
  description: 'Only events of these types; null: of all, also of later releases.',
} as const satisfies Schema;

/** Settings of an endpoint, as fields of a request body. */
export const SETTINGS = {
  url: textSchema('Begins with `https://`, without user, password and fragment. It must hold no secret.', {
    maxLength: LONGEST_URL,
  }),
  types: { ...TYPES, minItems: 1, maxItems: ALL_ENTRY_TYPES.length, uniqueItems: true },
  description: orNull(
    textSchema('Your own words. They must name no person.', {
      maxLength: LONGEST_DESCRIPTION,
      pattern: `^[^${DECEIVING}\\t\\n\\r]*$`,
      'x-errors': { pattern: 'description must be one line, without control characters' },
    }),
  ),
} as const satisfies Readonly<Record<string, Schema>>;

const DISABLED_BY: readonly DisabledBy[] = ['owner', 'failures', 'gone', 'inactive'];

const FIELDS = {
  id: textSchema(),
  url: textSchema(),
  types: TYPES,
  description: orNull(textSchema()),
  disabled: flagSchema('Nothing is delivered.'),
  disabled_by: orNull(
    choiceSchema(
      [...DISABLED_BY, null],
      '`owner`: a call; `failures`: nothing could be delivered for five days; `gone`: the receiver answered 410; `inactive`: the client or merchant was disabled. null where it is not disabled.',
    ),
  ),
  disabled_at: orNull(timeSchema('null where it is not disabled.')),
  created_at: timeSchema(),
} as const satisfies Readonly<Record<keyof EndpointRow, Schema>>;

const SECRET = textSchema('What deliveries are signed with (Standard Webhooks). It is shown this once.');

export const endpointSchema = entity('WebhookEndpoint', FIELDS);

export const createdSchema = entity('CreatedWebhookEndpoint', { ...FIELDS, secret: SECRET });

export const secretSchema = entity('WebhookSecret', {
  id: textSchema('Of the endpoint.'),
  secret: SECRET,
  previous_until: timeSchema('Until then deliveries are signed with earlier secrets, too; in the past: no longer.'),
});

export const attemptSchema = entity('WebhookAttempt', {
  id: textSchema(),
  event_id: textSchema('`webhook-id` of the delivery: of the event, or of the ping.'),
  position: orNull(textSchema('Of the event; null for a ping.')),
  type: choiceSchema([...ALL_ENTRY_TYPES, 'ping']),
  at: timeSchema(),
  status: orNull(integerSchema('Of the answer; null: there was none.')),
  error: orNull(textSchema('Why there was no answer.')),
  response: textSchema('How the answer began, at most 1,024 bytes.'),
  duration_ms: integerSchema(),
  next_at: orNull(timeSchema('When it is tried again; null: it was delivered, or given up.')),
});

export const endpointExample = {
  id: '6ec0bd7f11c043da975e2a8ad9ebae0b',
  url: 'https://shop.example/hooks/gifts',
  types: ['gift.redeemed', 'gift.unredeemed'],
  description: 'Accounting',
  disabled: false,
  disabled_by: null,
  disabled_at: null,
  created_at: '2026-05-04T12:30:00.000Z',
};

export const secretExample = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD0Bm6YwHRO6M=';

export const attemptExample = {
  id: '0b9d3c52-7e41-4c07-9a35-5b1d4b3f6a10',
  event_id: '2f0b7a52-6c0e-4b1f-9a40-0c7d1f6e8b11',
  position: '5d1f6f0c-8f55-4a3b-9f5e-2f3c1f0f7a11:0000000000001042',
  type: 'gift.redeemed',
  at: '2026-05-04T12:30:00.412Z',
  status: 503,
  error: null,
  response: 'upstream is down',
  duration_ms: 87,
  next_at: '2026-05-04T12:30:06.120Z',
};
