/** A purchase and its redemption with the client that openapi-typescript and openapi-fetch make of the description. */
import createClient from 'openapi-fetch';
import type { paths } from './description.js';

const client = createClient<paths>({ baseUrl: process.env['SERVICE_URL'] ?? '' });

function needed<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (data === undefined) throw new Error(`${response.status} ${JSON.stringify(error)}`);
  return data;
}

const bearer = (token: string): { Authorization: string } => ({ Authorization: `Bearer ${token}` });

const app = needed(
  await client.POST('/oauth/token', {
    body: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
  }),
).access_token;

async function logIn(user: string): Promise<{ Authorization: string }> {
  const body = { grant_type: 'password', username: `${user}@test.example`, password: `${user}-password` } as const;
  return bearer(needed(await client.POST('/oauth/token', { headers: bearer(app), body })).access_token);
}

const buyer = await logIn('ann');
const bought = needed(
  await client.POST('/api/v2/transactions', {
    headers: buyer,
    params: { header: { 'Idempotency-Key': 'openapi-typescript' } },
    body: {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: { type: 'gift', reference: 'latte', receivers: [{ phone_number: '+447700900777' }] },
    },
  }),
);
const [giftId] = bought.data.gifts;
if (giftId === undefined) throw new Error('nothing was bought');

const redemption = needed(
  await client.POST('/api/v2/gifts/{giftId}/redemptions', {
    headers: await logIn('till-coffee'),
    params: { path: { giftId } },
    body: { location_id: 'bean-soho' },
  }),
);
const gift = needed(await client.GET('/api/v2/gifts/{giftId}', { headers: buyer, params: { path: { giftId } } }));
const { data: none, error } = await client.GET('/api/v2/gifts/{giftId}', {
  headers: buyer,
  params: { path: { giftId: 'unknown' } },
});
console.log(
  JSON.stringify({
    redemption: redemption.data.id === gift.data.redeemed_id,
    status: gift.data.gift_status,
    unknown: none === undefined ? error.error : '',
  }),
);
