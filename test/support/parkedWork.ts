/** Work that the simulated provider makes the service park, over HTTP. */
import assert from 'node:assert/strict';
import type { AppOptions } from '../../src/service/app.js';
import { purchaseOf } from './giftFlow.js';
import { type Json, type Service, startService } from './service.js';
import { eventually } from './until.js';

/** A service whose users have cards that make trouble; a purchase does not wait for them. */
export async function startWithTrouble(app?: AppOptions): Promise<Service> {
  const service = await startService({ env: { CHARGE_WAIT_MS: '50' }, ...(app === undefined ? {} : { app }) });
  await service.import({
    payment_methods: ['pm_card_parked', 'pm_card_refundFail'].map((reference) => ({
      reference,
      kind: 'card',
      users: ['ann'],
    })),
  });
  return service;
}

/** A purchase, and its first gift. */
export interface Bought {
  readonly transaction: string;
  readonly gift: string;
}

/** Buys as ann, without waiting for anything. */
async function bought(service: Service, reference: string, receivers?: readonly object[]): Promise<Bought> {
  const reply = await eventually(async () => {
    // The payment method may have been imported a moment ago.
    const asked = await service.ask('POST', '/api/v2/transactions', {
      token: await service.userToken('ann'),
      body: purchaseOf('latte', receivers, { reference }),
    });
    return asked.status === 201 ? asked : undefined;
  });
  const { id, gifts } = reply.json.data as { id: string; gifts: string[] };
  return { transaction: id, gift: gifts[0] ?? '' };
}

/** Buys what can't be charged, and waits until it is parked. */
export async function parkedPurchase(service: Service, receivers?: readonly object[]): Promise<Bought> {
  const made = await bought(service, 'pm_card_parked', receivers);
  await parkedTimes(service, 'purchase', made.transaction, 1);
  return made;
}

/**
 * Buys what can't be refunded, asks for its refund, and waits until that is parked. @returns the refund's id as well
 */
export async function parkedRefund(service: Service): Promise<Bought & { readonly refund: string }> {
  const made = await bought(service, 'pm_card_refundFail');
  await eventually(async () => (await service.events.read(`gift-${made.gift}`)).length > 0);
  const reply = await service.ask('POST', `/ops/transactions/${made.transaction}/refund`, {
    token: await service.userToken('sue'),
    body: { reason: 'wrong product' },
  });
  assert.equal(reply.status, 200, reply.text);
  const refund = reply.json.data.id as string;
  await parkedTimes(service, 'refund', refund, 1);
  return { ...made, refund };
}

/** Waits until an entity has been parked so often. @returns the last time's event */
export async function parkedTimes(service: Service, name: string, entity: string, times: number): Promise<Json> {
  return eventually(async () => {
    const own = (await service.events.read(`parked-${name}`)).filter(
      ({ type, data }) => type === 'WorkParked' && (data as Json).entity === entity,
    );
    return own.length >= times ? own.at(-1) : undefined;
  });
}
