import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { WebhookEndpointEvent } from '../../src/domain/webhookEndpoint.js';
import type { RecordedEvent } from '../../src/ports/eventStore.js';
import {
  endpointDocument,
  positionOfRequest,
  requestDocument,
  requestsEnd,
  type WebhookDocument,
  webhookEndpointsProjection,
} from '../../src/projections/webhookEndpoints.js';
import { touchedBy } from '../../src/runtime/readmodels/projection.js';

const test = suite('projections/webhookEndpoints');

/** The documents after these events of one endpoint, at positions 1, 2 and so on, a minute apart. */
function documentsAfter(...events: readonly WebhookEndpointEvent[]): ReadonlyMap<string, WebhookDocument> {
  const documents = new Map<string, WebhookDocument>();
  for (const [index, { type, data }] of events.entries()) {
    const number = index + 1;
    const event = {
      id: `event-${number}`,
      type,
      data,
      at: `2026-03-01T09:0${number}:00.000Z`,
      stream: 'webhookEndpoint-e1',
      position: `000${number}`,
    } as RecordedEvent;
    for (const [place, id] of touchedBy(webhookEndpointsProjection, event).entries())
      documents.set(id, webhookEndpointsProjection.evolve(documents.get(id), event, id, place));
  }
  return documents;
}

const created: WebhookEndpointEvent = {
  type: 'WebhookEndpointCreated',
  data: {
    owner: { kind: 'merchant', id: 'coffee' },
    url: 'https://shop.example/',
    types: ['gift.redeemed'],
    description: null,
    secret_id: 's1',
  },
};
const DOCUMENT = {
  endpoint_id: 'e1',
  owner: 'merchant:coffee',
  url: 'https://shop.example/',
  types: ['gift.redeemed'],
  description: null,
  state: 'enabled',
  created_at: '2026-03-01T09:01:00.000Z',
  secrets: [{ id: 's1' }],
  from: '0001',
  enabled_at: '2026-03-01T09:01:00.000Z',
};

test('an endpoint is delivered what follows its creation', () => {
  assert.equal([...documentsAfter(created)], [[endpointDocument('e1'), DOCUMENT]]);
});

test('holds what was changed, and the secrets that sign', () => {
  const documents = documentsAfter(
    created,
    { type: 'WebhookEndpointChanged', data: { types: null, description: 'x' } },
    { type: 'WebhookSecretRotated', data: { secret_id: 's2', previous_until: '2026-03-02T09:03:00.000Z' } },
  );
  assert.equal(documents.get(endpointDocument('e1')), {
    ...DOCUMENT,
    types: null,
    description: 'x',
    secrets: [{ id: 's2' }, { id: 's1', until: '2026-03-02T09:03:00.000Z' }],
  });
});

test('one that is enabled again is delivered what follows that, and one that is deleted nothing', () => {
  const disabled: WebhookEndpointEvent = { type: 'WebhookEndpointDisabled', data: { cause: 'gone' } };
  const stopped = documentsAfter(created, disabled).get(endpointDocument('e1'));
  assert.equal(stopped, {
    ...DOCUMENT,
    state: 'disabled',
    disabled_by: 'gone',
    disabled_at: '2026-03-01T09:02:00.000Z',
  });
  const again = documentsAfter(created, disabled, { type: 'WebhookEndpointEnabled', data: {} });
  assert.equal(again.get(endpointDocument('e1')), {
    ...DOCUMENT,
    from: '0003',
    enabled_at: '2026-03-01T09:03:00.000Z',
  });
  const deleted = documentsAfter(created, { type: 'WebhookEndpointDeleted', data: {} });
  assert.equal(deleted.get(endpointDocument('e1')), { ...DOCUMENT, state: 'deleted' });
});

test('each request is a document of its own, between two ids and in log order', () => {
  const documents = documentsAfter(
    created,
    { type: 'WebhookPingRequested', data: {} },
    { type: 'WebhookResendRequested', data: { event_id: 'x', position: '0000' } },
    { type: 'WebhookRecoverRequested', data: { since: '2026-02-01T00:00:00.000Z' } },
  );
  assert.equal(documents.get(endpointDocument('e1')), { ...DOCUMENT, requested: '0004' });
  const [from, to] = [requestDocument('e1', ''), requestsEnd('e1')];
  const requests = [...documents].filter(([id]) => id > from && id < to);
  assert.equal(requests, [
    ['request/e1/0002', { id: 'event-2', at: '2026-03-01T09:02:00.000Z', request: { kind: 'ping' } }],
    [
      'request/e1/0003',
      { id: 'event-3', at: '2026-03-01T09:03:00.000Z', request: { kind: 'resend', event_id: 'x', position: '0000' } },
    ],
    [
      'request/e1/0004',
      {
        id: 'event-4',
        at: '2026-03-01T09:04:00.000Z',
        request: { kind: 'recover', since: '2026-02-01T00:00:00.000Z' },
      },
    ],
  ]);
  assert.equal(
    requests.map(([id]) => positionOfRequest(id)),
    ['0002', '0003', '0004'],
  );
});

test.run();
