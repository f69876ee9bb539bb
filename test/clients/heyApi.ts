/** A purchase and its redemption with the client that hey-api makes of the description. */
import { client } from './client/client.gen.js';
import { getAccessToken, getGift, purchaseGifts, redeemGift } from './client/sdk.gen.js';

client.setConfig({ baseUrl: process.env['SERVICE_URL'] ?? '', throwOnError: false });

function needed<T>({ data, error, response }: { data?: T; error?: unknown; response?: Response }): T {
  if (data === undefined) throw new Error(`${response?.status} ${JSON.stringify(error)}`);
  return data;
}

const app = needed(
  await getAccessToken({
    body: { grant_type: 'client_credentials', client_id: 'app', client_secret: 'app-secret' },
  }),
).access_token;

async function logIn(user: string): Promise<string> {
  const body = { grant_type: 'password', username: `${user}@test.example`, password: `${user}-password` } as const;
  return needed(await getAccessToken({ auth: app, body })).access_token;
}

const buyer = await logIn('ann');
const bought = needed(
  await purchaseGifts({
    auth: buyer,
    headers: { 'Idempotency-Key': 'hey-api' },
    body: {
      payment: { method: 'card', reference: 'pm_card_visa' },
      purchase: { type: 'gift', reference: 'latte', receivers: [{ phone_number: '+447700900777' }] },
    },
  }),
);
const [giftId] = bought.data.gifts;
if (giftId === undefined) throw new Error('nothing was bought');

const redemption = needed(
  await redeemGift({ auth: await logIn('till-coffee'), path: { giftId }, body: { location_id: 'bean-soho' } }),
);
const gift = needed(await getGift({ auth: buyer, path: { giftId } }));
const { error } = await getGift({ auth: buyer, path: { giftId: 'unknown' } });
console.log(
  JSON.stringify({
    redemption: redemption.data.id === gift.data.redeemed_id,
    status: gift.data.gift_status,
    unknown: error?.error,
  }),
);
