import { type DemoClient, type Exchange, type RequestOptions, spaced } from './console.js';

export interface NotificationOutcome {
  readonly outcome: string;
  readonly detail: object;
}

const TILL = { username: 'till-kettle@demo.example', password: 'demo-till-kettle' };
const LOCATION = 'kettle-covent-garden';

const field = (exchange: Exchange, ...path: readonly (string | number)[]): string => {
  let value: unknown = exchange.body;
  for (const part of path) value = (value as Record<string | number, unknown> | undefined)?.[part];
  if (typeof value !== 'string')
    throw new Error(`the answer has no ${path.join('.')}: ${JSON.stringify(exchange.body).slice(0, 300)}`);
  return value;
};

const expectStatus = (exchange: Exchange, status: number): Exchange => {
  if (exchange.status !== status)
    throw new Error(`expected ${status}, got ${exchange.status}: ${JSON.stringify(exchange.body).slice(0, 300)}`);
  return exchange;
};

/** @returns further requests to print, for a base address @throws Error when an answer is not the expected one */
export async function walkThrough(
  { step, note, call }: DemoClient,
  notified: (giftId: string) => Promise<NotificationOutcome>,
): Promise<(url: string) => string> {
  const login = async (client: string, username: string, password: string): Promise<string> => {
    const clientToken = await call('POST', '/oauth/token', {
      body: { grant_type: 'client_credentials', client_id: client, client_secret: `${client}-secret` },
    });
    const user = await call('POST', '/oauth/token', {
      token: field(clientToken, 'access_token'),
      body: { grant_type: 'password', username, password },
    });
    return field(expectStatus(user, 200), 'access_token');
  };

  step('Ada signs in: a client token for the app, with it a user token.');
  const ada = await login('demo-app', 'ada@demo.example', 'demo-ada');
  step('She looks for something, with a typing error.');
  expectStatus(await call('GET', '/api/v2/products?q=flat+whit&embed[]=brand', { token: ada }), 200);
  expectStatus(await call('GET', '/api/v2/tiles/-0.13,51.51:-0.12,51.52?granularity=14', { token: ada }), 200);

  step('She buys two flat whites: one for a phone number (it is Ben’s), one for the user dai.');
  const purchase = {
    payment: { method: 'card', reference: 'pm_card_visa' },
    purchase: {
      type: 'gift',
      reference: 'flat-white',
      receivers: [{ phone_number: '07700 900102' }, { user_id: 'dai' }],
      message: 'Coffee is on me!',
    },
  };
  const bought = expectStatus(
    await call('POST', '/api/v2/transactions', { token: ada, body: purchase, key: 'demo-purchase-1' }),
    201,
  );
  const gift = field(bought, 'data', 'gifts', 0);
  const second = field(bought, 'data', 'gifts', 1);
  step('The receivers are notified.');
  for (const id of [gift, second]) {
    const { outcome, detail } = await notified(id);
    note(`gift ${id.slice(0, 6)}…: ${outcome} ${spaced(detail)}`);
  }

  step('Ben looks his gift up by shortcode, with what belongs to it.');
  const ben = await login('demo-app', 'ben@demo.example', 'demo-ben');
  const shortcode = field(await call('GET', `/api/v2/gifts/${gift}`, { token: ben }), 'data', 'shortcode');
  expectStatus(
    await call('GET', `/api/v2/gifts/${shortcode.toLowerCase()}?embed[]=message&embed[]=purchase.brand.stores`, {
      token: ben,
    }),
    200,
  );

  step('The till redeems it; a second time it is refused.');
  const till = await login('demo-pos', TILL.username, TILL.password);
  expectStatus(await call('GET', `/api/v2/gifts/${shortcode}/product/adjustment-codes`, { token: till }), 200);
  const redeem = (key: Pick<RequestOptions, 'key'> = {}): Promise<Exchange> =>
    call('POST', `/api/v2/gifts/${shortcode}/redemptions`, { token: till, body: { location_id: LOCATION }, ...key });
  expectStatus(await redeem({ key: 'demo-redeem-1' }), 201);
  expectStatus(await redeem(), 405);
  step('The same request with the same Idempotency-Key gets the first answer again.');
  expectStatus(await redeem({ key: 'demo-redeem-1' }), 201);
  step('The till reverses the latest redemption, and redeems again.');
  expectStatus(
    await call('PATCH', `/api/v2/gifts/${shortcode}/redemptions/latest`, { token: till, body: { redeemed: false } }),
    200,
  );
  expectStatus(await redeem(), 201);

  step('Ada buys a gift to share by URL; whoever opens it sees this page.');
  const shared = expectStatus(
    await call('POST', '/api/v2/transactions', {
      token: ada,
      body: { ...purchase, purchase: { type: 'gift', reference: 'flat-white', message: 'Enjoy' } },
    }),
    201,
  );
  const lookedUp = await call('GET', `/api/v2/gifts/${field(shared, 'data', 'gifts', 0)}`, { token: ada });
  const sharedGift = field(lookedUp, 'data', 'shortcode');
  const link = new URL(field(lookedUp, 'data', 'launch_url')).pathname;
  expectStatus(await call('GET', link), 200);
  step('Ben claims it, and generates its voucher: one code, shown in both formats.');
  expectStatus(await call('POST', `/api/v2/gifts/${sharedGift}/claim`, { token: ben }), 200);
  expectStatus(await call('GET', `/api/v2/gifts/${sharedGift}/voucher/options`, { token: ben }), 200);
  const v1 = expectStatus(
    await call('POST', `/api/v2/gifts/${sharedGift}/voucher`, { token: ben, body: { embed: ['voucher.segment'] } }),
    200,
  );
  const v2 = expectStatus(await call('POST', `/api/v2/gifts/${sharedGift}/voucher/claimed`, { token: ben }), 200);
  note(
    `V1 embedded.vouchers[0].code: ${field(v1, 'embedded', 'vouchers', 0, 'code')}; V2 data[0].value: ${field(v2, 'data', 0, 'value')}`,
  );

  step('Ada’s app reads what has happened, in order, and asks for more from `next` on.');
  expectStatus(await call('GET', '/api/v2/events?limit=4', { token: ada }), 200);

  const authorized = `-H "Authorization: Bearer $TOKEN"`;
  const json = `-H 'Content-Type: application/json'`;
  return (url) =>
    [
      `A=${url}`,
      `TOKEN=${till}`,
      `curl -s $A/api/v2/gifts/${shortcode} ${authorized}`,
      `curl -s -X PATCH $A/api/v2/gifts/${shortcode}/redemptions/latest \\`,
      `  ${authorized} ${json} \\`,
      `  -d '{"redeemed": false}'`,
      `curl -s -X POST $A/api/v2/gifts/${shortcode}/redemptions \\`,
      `  ${authorized} ${json} \\`,
      `  -d '{"location_id": "${LOCATION}"}'`,
      `curl -s "$A/api/v2/events?wait=20" ${authorized}`,
      `curl -s "$A/api/v2/products?q=coffee&max_price=500" \\`,
      `  ${authorized}`,
    ].join('\n');
}
