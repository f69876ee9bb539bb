/** Steps that many HTTP tests share. */
import assert from 'node:assert/strict';
import { notificationStream } from '../../../src/domain/notification.js';
import { eventually } from '../assertions/until.js';
import type { Reply, Service } from './service.js';

/** A purchase's body. */
export function purchaseOf(
  product: string,
  receivers?: readonly object[],
  more: { readonly reference?: string; readonly message?: string; readonly sendAt?: string } = {},
): object {
  return {
    payment: { method: 'card', reference: more.reference ?? 'pm_card_visa' },
    purchase: {
      type: 'gift',
      reference: product,
      ...(receivers === undefined ? {} : { receivers }),
      ...(more.message === undefined ? {} : { message: more.message }),
      ...(more.sendAt === undefined ? {} : { send_at: more.sendAt }),
    },
  };
}

/** Buys as `buyer` (default ann) and gives the ids of the gifts. */
export async function buy(
  service: Service,
  product = 'latte',
  receivers?: readonly object[],
  buyer = 'ann',
): Promise<string[]> {
  const reply = await service.ask('POST', '/api/v2/transactions', {
    token: await service.userToken(buyer),
    body: purchaseOf(product, receivers),
  });
  assert.equal(reply.status, 201, reply.text);
  return reply.json['data']['gifts'] as string[];
}

/** Buys one gift. */
export async function buyOne(service: Service, product = 'latte', receiver?: object, buyer = 'ann'): Promise<string> {
  const [gift] = await buy(service, product, receiver === undefined ? undefined : [receiver], buyer);
  if (gift === undefined) throw new Error('nothing was bought');
  return gift;
}

/** Redeems as `user`. */
export async function redeem(
  service: Service,
  gift: string,
  user = 'till-coffee',
  location = 'bean-soho',
  more: { readonly key?: string } = {},
): Promise<Reply> {
  return service.ask('POST', `/api/v2/gifts/${gift}/redemptions`, {
    token: await service.userToken(user),
    body: { location_id: location },
    ...more,
  });
}

/** Reverses as `user`. */
export async function unredeem(
  service: Service,
  gift: string,
  redemption = 'latest',
  user = 'till-coffee',
  more: { readonly key?: string } = {},
): Promise<Reply> {
  return service.ask('PATCH', `/api/v2/gifts/${gift}/redemptions/${redemption}`, {
    token: await service.userToken(user),
    body: { redeemed: false },
    ...more,
  });
}

/** Waits until the receiver was notified, or could not be: before that, support may not reassign the gift. */
export async function notificationOver(service: Service, gift: string): Promise<void> {
  await eventually(async () =>
    (await service.events.read(notificationStream(gift))).some(({ type }) => /^Notification(Sent|Failed)$/.test(type)),
  );
}

/** The answer is this refusal, to the letter. */
export function refused(reply: Reply, status: number, error: string): void {
  assert.deepEqual([reply.status, reply.json], [status, { error }]);
  assert.match(reply.headers.get('content-type') ?? '', /^application\/json/);
}
