import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import {
  changeEndpoint,
  deleteEndpoint,
  disableEndpoint,
  liveEndpoint,
  MOST_A_DAY,
  ownerName,
  refuseTooMany,
  requestDelivery,
  rotateSecret,
  signingSecretIds,
  webhookEndpointAggregate,
  type WebhookEndpointEvent,
  webhookEndpointStream,
} from '../../src/domain/webhookEndpoint.js';
import { fold } from '../../src/domain/decider.js';
import { Refusal } from '../../src/domain/refusal.js';
import { given as givenOf, GIVEN_AT } from '../support/assertions/givenWhenThen.js';

const test = suite('webhook endpoint');

const created: WebhookEndpointEvent = {
  type: 'WebhookEndpointCreated',
  data: {
    owner: { kind: 'client', id: 'shop' },
    url: 'https://shop.example/hooks',
    types: null,
    description: null,
    secret_id: 's1',
  },
};
const disabled: WebhookEndpointEvent = { type: 'WebhookEndpointDisabled', data: { cause: 'failures' } };
const enabled: WebhookEndpointEvent = { type: 'WebhookEndpointEnabled', data: {} };
const deleted: WebhookEndpointEvent = { type: 'WebhookEndpointDeleted', data: {} };
const ping: WebhookEndpointEvent & { type: 'WebhookPingRequested' } = { type: 'WebhookPingRequested', data: {} };
const rotatedTo = (secret_id: string, previous_until: string): WebhookEndpointEvent => ({
  type: 'WebhookSecretRotated',
  data: { secret_id, previous_until },
});
const given = (...events: readonly WebhookEndpointEvent[]) => givenOf(webhookEndpointAggregate, ...events);

test('takes so many requests of a kind a day, and more the day after', () => {
  const at = (hours: number): string => new Date(Date.parse(GIVEN_AT) + hours * 3_600_000).toISOString();
  for (const [type, most] of Object.entries(MOST_A_DAY)) {
    const event = { type, data: {} } as WebhookEndpointEvent;
    const before = fold(webhookEndpointAggregate, [
      { ...created, at: at(0) },
      ...Array.from({ length: most }, () => ({ ...event, at: at(0) })),
    ]);
    const refused = (hours: number, state = before): boolean => {
      try {
        refuseTooMany(state, [event], at(hours));
        return false;
      } catch (error) {
        return error instanceof Refusal && error.code === 'too_many_webhook_requests';
      }
    };
    assert.ok(refused(23.9), type);
    assert.not(refused(24), type);
    assert.not(refused(1, fold(webhookEndpointAggregate, [{ ...created, at: at(0) }])), type);
    const oneLeft = Array.from({ length: most - 1 }, () => ({ ...event, at: at(0) }));
    assert.not(refused(1, fold(webhookEndpointAggregate, [{ ...created, at: at(0) }, ...oneLeft])), type);
    refuseTooMany(before, [disabled], at(1));
  }
});

test('its stream is named by its id', () => assert.is(webhookEndpointStream('e1'), 'webhookEndpoint-e1'));

test('a client and a merchant with the same id are different owners', () => {
  assert.is.not(ownerName({ kind: 'client', id: 'shop' }), ownerName({ kind: 'merchant', id: 'shop' }));
});

test('one that is gone has no limits, so that it is refused as not found', () => {
  for (const { state } of [given(), given(created, deleted)]) refuseTooMany(state, [ping], GIVEN_AT);
  assert.equal(given().state, { status: 'none' });
  assert.equal(given(created, deleted).state, { status: 'deleted', owner: { kind: 'client', id: 'shop' } });
});

test('keeps only what a change changes', () => {
  given(created)
    .when((state) => changeEndpoint(state, { url: 'https://shop.example/hooks', types: ['gift.redeemed'] }))
    .then({ type: 'WebhookEndpointChanged', data: { types: ['gift.redeemed'] } });
  given(created, { type: 'WebhookEndpointChanged', data: { types: ['gift.redeemed'] } })
    .when((state) => changeEndpoint(state, { types: ['gift.redeemed'], description: null }))
    .then();
});

test('is disabled and enabled once, with a change or without', () => {
  given(created)
    .when((state) => changeEndpoint(state, { disabled: true, description: 'old' }))
    .then(
      { type: 'WebhookEndpointChanged', data: { description: 'old' } },
      { type: 'WebhookEndpointDisabled', data: { cause: 'owner' } },
    );
  given(created)
    .when((state) => changeEndpoint(state, { disabled: false }))
    .then();
  given(created, disabled)
    .when((state) => changeEndpoint(state, { disabled: true }))
    .then();
  given(created, disabled)
    .when((state) => changeEndpoint(state, { disabled: false }))
    .then(enabled);
  given(created, disabled)
    .when((state) => disableEndpoint(state, 'gone'))
    .then();
  given(created, disabled, enabled)
    .when((state) => disableEndpoint(state, 'gone'))
    .then({ type: 'WebhookEndpointDisabled', data: { cause: 'gone' } });
});

test('rotates its secret with a day in which the one before signs, too', () => {
  const after = given(created).state;
  const [rotation] = rotateSecret(after, 's2', GIVEN_AT);
  assert.equal(rotation, rotatedTo('s2', '2026-03-02T09:00:00.000Z'));
  const { secrets } = liveEndpoint(given(created, rotation as WebhookEndpointEvent).state);
  assert.equal(signingSecretIds(secrets, GIVEN_AT), ['s2', 's1']);
  assert.equal(signingSecretIds(secrets, '2026-03-02T08:59:59.999Z'), ['s2', 's1']);
  assert.equal(signingSecretIds(secrets, '2026-03-02T09:00:00.000Z'), ['s2']);
});

test('a later rotation ends the overlap of an earlier one no later', () => {
  const { secrets } = liveEndpoint(
    given(created, rotatedTo('s2', '2026-03-02T09:00:00.000Z'), rotatedTo('s3', '2026-03-02T20:00:00.000Z')).state,
  );
  assert.equal(signingSecretIds(secrets, GIVEN_AT), ['s3', 's2', 's1']);
  assert.equal(signingSecretIds(secrets, '2026-03-02T10:00:00.000Z'), ['s3', 's2']);
});

test('ends all earlier secrets at once where a rotation leaves no grace', () => {
  const earlier = given(created, rotatedTo('s2', '2026-03-02T09:00:00.000Z')).state;
  const [rotation] = rotateSecret(earlier, 's3', GIVEN_AT, 0);
  assert.equal(rotation, rotatedTo('s3', GIVEN_AT));
  const { secrets } = liveEndpoint(
    given(created, rotatedTo('s2', '2026-03-02T09:00:00.000Z'), rotation as WebhookEndpointEvent).state,
  );
  assert.equal(signingSecretIds(secrets, GIVEN_AT), ['s3']);
});

test('signs with five secrets at most', () => {
  const rotations = [2, 3, 4, 5, 6, 7].map((number) => rotatedTo(`s${number}`, '2026-03-02T09:00:00.000Z'));
  const { secrets } = liveEndpoint(given(created, ...rotations).state);
  assert.equal(signingSecretIds(secrets, GIVEN_AT), ['s7', 's6', 's5', 's4', 's3']);
});

test('is asked for deliveries while it is enabled', () => {
  given(created)
    .when((state) => requestDelivery(state, ping))
    .then(ping);
  given(created, ping)
    .when((state) => requestDelivery(state, ping))
    .then(ping);
  given(created, disabled)
    .when((state) => requestDelivery(state, ping))
    .refused('webhook_endpoint_disabled');
});

test('one that is gone, or never was, is not found', () => {
  for (const scenario of [given(), given(created, deleted), given(created, deleted, enabled)]) {
    scenario.when((state) => changeEndpoint(state, { disabled: true })).refused('webhook_endpoint_not_found');
    scenario.when((state) => rotateSecret(state, 's2', GIVEN_AT)).refused('webhook_endpoint_not_found');
    scenario.when((state) => requestDelivery(state, ping)).refused('webhook_endpoint_not_found');
    scenario.when(deleteEndpoint).then();
    scenario.when((state) => disableEndpoint(state, 'failures')).then();
  }
  given(created).when(deleteEndpoint).then(deleted);
});

test.run();
