import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { isGiftId } from '../../../src/domain/giftIds.js';
import { answerOf, checked, unharmed } from '../../support/service/answers.js';
import { buyOne, purchaseOf, redeem, refused } from '../../support/service/giftFlow.js';
import { boughtBefore } from '../../support/fixtures/pastPurchase.js';
import { type Json, type Reply, type Service, startService } from '../../support/service/service.js';
import { eventually } from '../../support/assertions/until.js';

const test = suite('the page behind a launch_url');
let service: Service;
/** Without APP_URL, and with a limit that is soon reached. */
let plain: Service;

test.before(async () => {
  service = await startService({
    env: { APP_URL: 'https://app.test/o\'p"en/', PUBLIC_URL: 'https://gifts.test/base/' },
  });
  plain = await startService({ split: false, env: { UNKNOWN_GIFTS_PER_ADDRESS: '2' } });
});
test.after(async () => {
  await unharmed(service);
  await service.close();
  await plain.close();
});

async function page(gift: string, method = 'GET'): Promise<Reply> {
  return service.ask(method, `/g/${isGiftId(gift) ? service.shortcodeOf(gift) : gift}`);
}

test('needs no token and shows product, brand, expiry and a link to the app', async () => {
  const gift = await buyOne(service, 'latte', { user_id: 'bob' });
  const token = await service.userToken('bob');
  const { data } = (await service.ask('GET', `/api/v2/gifts/${gift}`, { token })).json;
  assert.equal(data.launch_url, `https://gifts.test/base/g/${service.shortcodeOf(gift)}`);
  for (const spelling of [
    service.shortcodeOf(gift),
    service.shortcodeOf(gift).toLowerCase(),
    `${service.shortcodeOf(gift)}/`,
  ]) {
    const reply = await page(spelling);
    assert.equal(reply.status, 200);
    for (const told of ['Café latte', 'Bean', data.expiry_date as string, service.shortcodeOf(gift)])
      assert.ok(reply.text.includes(told), told);
    assert.ok(reply.text.includes(`href="https://app.test/o&#39;p%22en/?gift=${service.shortcodeOf(gift)}"`));
  }
});

test('every address in an answer has the path of PUBLIC_URL', async () => {
  const token = await service.userToken('ann');
  const bought = await service.ask('POST', '/api/v2/transactions', { token, body: purchaseOf('latte', [{}, {}]) });
  const location = bought.headers.get('location') ?? '';
  assert.equal(location, `/base/api/v2/transactions/${bought.json.data.id}/gifts`);
  const declined = await service.ask('POST', '/api/v2/transactions', {
    token,
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  assert.match(declined.headers.get('location') ?? '', /^\/base\/api\/v2\/transactions\/[0-9a-f]{32}\/gifts$/);
  const page1 = (await service.ask('GET', `${location.replace('/base', '')}?per_page=1`, { token })).json;
  assert.deepEqual(
    [page1.path, page1.next_page_url],
    [`https://gifts.test${location}`, `https://gifts.test${location}?per_page=1&page=2`],
  );
  const feed = await service.ask('GET', '/api/v2/events?limit=1', {
    token,
    headers: { accept: 'application/cloudevents-batch+json' },
  });
  assert.match(feed.headers.get('link') ?? '', /^<\/base\/api\/v2\/events\?limit=1&after=[^>]+>; rel="next"$/);
  const { servers, components } = (await service.ask('GET', '/openapi.json')).json;
  assert.deepEqual(servers, [{ url: 'https://gifts.test/base' }]);
  assert.equal(
    components.securitySchemes.clientCredentials.flows.clientCredentials.tokenUrl,
    'https://gifts.test/base/oauth/token',
  );
});

test('its headers: no script, no index, no referrer, not kept', async () => {
  const reply = await page(service.shortcodeOf(await buyOne(service)));
  checked(answerOf(reply));
  assert.equal(reply.headers.get('content-type'), 'text/html; charset=utf-8');
  assert.equal(reply.headers.get('cache-control'), 'no-store');
  assert.equal(reply.headers.get('x-robots-tag'), 'noindex, nofollow');
  assert.equal(reply.headers.get('referrer-policy'), 'no-referrer');
  const policy = reply.headers.get('content-security-policy') ?? '';
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.doesNotMatch(policy, /script-src/);
  assert.match(reply.text, /<meta name="robots" content="noindex, nofollow">/);
  assert.match(reply.text, /<meta name="referrer" content="no-referrer">/);
  assert.doesNotMatch(reply.text, /<script|https?:\/\/(?!app\.test)/);
});

test('no message and no names', async () => {
  const body = purchaseOf('latte', [{ user_id: 'bob' }], { message: 'a secret wish' });
  const [gift] = (await service.ask('POST', '/api/v2/transactions', { token: await service.userToken('ann'), body }))
    .json.data.gifts as string[];
  const { text } = await page(gift ?? '');
  assert.doesNotMatch(text, /secret wish|\bann\b|\bbob\b|07700|\+44/);
});

test('used, expired and cancelled gifts say so', async () => {
  const used = await buyOne(service);
  await redeem(service, used);
  assert.match((await page(used)).text, /This gift has been used\./);
  assert.match((await page(await boughtBefore(service))).text, /This gift has expired\./);
  const token = await service.userToken('ann');
  const declined = await service.ask('POST', '/api/v2/transactions', {
    token,
    body: purchaseOf('latte', undefined, { reference: 'pm_card_visa_chargeDeclined' }),
  });
  const [cancelled] = (
    await service.ask('GET', declined.headers.get('location')?.replace('/base', '') ?? '', { token })
  ).json.data as Json[];
  assert.match((await page(cancelled.id)).text, /This gift was cancelled\./);
});

test('it names the brand that its product is of now: that one redeems it', async () => {
  const brand = { id: 'old-cup', name: 'Old Cup', merchant_id: 'coffee' };
  const product = { id: 'cup-tea', brand_id: 'old-cup', name: 'Cup of tea', sale_price: 100 };
  await service.import({ brands: [brand, { ...brand, id: 'new-cup', name: 'New Cup' }], products: [product] });
  const token = await service.userToken('ann');
  const brandNow = async (): Promise<string> =>
    (await service.ask('GET', '/api/v2/products/cup-tea', { token })).json.data?.brand_id as string;
  await eventually(async () => (await brandNow()) === 'old-cup');
  const gift = await buyOne(service, 'cup-tea');
  assert.match((await page(gift)).text, /Old Cup/);
  await service.import({ products: [{ ...product, brand_id: 'new-cup' }] });
  await eventually(async () => (await brandNow()) === 'new-cup');
  const { text } = await page(gift);
  assert.match(text, /New Cup/);
  assert.doesNotMatch(text, /Old Cup/);
});

test('names are text, whatever they hold', async () => {
  const name = '<script>alert("1")</script>\' & <img src=x onerror=alert(1)>';
  await service.import({
    merchants: [{ id: 'evil', name: 'Evil' }],
    brands: [{ id: 'evil', name: `${name} brand`, merchant_id: 'evil' }],
    products: [{ id: 'evil', brand_id: 'evil', name, sale_price: 100 }],
  });
  const token = await service.userToken('ann');
  await eventually(async () => (await service.ask('GET', '/api/v2/products/evil', { token })).status === 200);
  const { text } = await page(await buyOne(service, 'evil'));
  assert.doesNotMatch(text, /<script|<img/);
  assert.ok(text.includes('&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;&#39; &amp; &lt;img'));
});

test('unknown gifts, other methods, HEAD', async () => {
  for (const unknown of [
    '0'.repeat(16),
    '0'.repeat(20),
    'nonsense',
    '%00',
    '__proto__',
    '<script>',
    '..%2f..',
    "'%20or%201=1",
  ])
    refused(await page(unknown), 404, 'gift not found');
  refused(await service.ask('GET', '/g'), 404, 'Not found.');
  const gift = await buyOne(service);
  for (const method of ['POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
    const reply = await page(gift, method);
    refused(reply, 405, 'Method not allowed.');
    assert.equal(reply.headers.get('allow'), 'GET, HEAD');
  }
  const head = await page(gift, 'HEAD');
  assert.deepEqual([head.status, head.text, head.headers.get('content-type')], [200, '', 'text/html; charset=utf-8']);
});

test("links to the app's address as set; says that a gift is not paid for yet", async () => {
  const linked = await startService({ env: { APP_URL: 'https://app.test/open', CHARGE_WAIT_MS: '50' } });
  try {
    const gift = await buyOne(linked);
    assert.ok(
      (await linked.ask('GET', `/g/${linked.shortcodeOf(gift)}`)).text.includes(
        `href="https://app.test/open?gift=${linked.shortcodeOf(gift)}"`,
      ),
    );
    const slow = await linked.ask('POST', '/api/v2/transactions', {
      token: await linked.userToken('ann'),
      body: purchaseOf('latte', undefined, { reference: 'pm_card_slow' }),
    });
    assert.match(
      (await linked.ask('GET', `/g/${linked.shortcodeOf(slow.json.data.gifts[0] as string)}`)).text,
      /This gift is not paid for yet\./,
    );
  } finally {
    await linked.close();
  }
});

test('without the app’s address there is no link', async () => {
  assert.doesNotMatch((await plain.ask('GET', `/g/${plain.shortcodeOf(await buyOne(plain))}`)).text, /<a /);
});

test('answers a browser’s errors with pages, and their status and headers', async () => {
  const open = async (accept: string): Promise<Response> =>
    fetch(`${plain.url}/g/${'0'.repeat(16)}`, { headers: { accept } });
  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
  const unknown = await open(BROWSER);
  assert.deepEqual([unknown.status, unknown.headers.get('error-code')], [404, 'gift_not_found']);
  assert.match(await unknown.text(), /<h1>There is no such gift<\/h1>/);
  refused(await plain.ask('GET', '/g/nonsense'), 404, 'gift not found');
  const refusal = await open(BROWSER);
  const seconds = Number(refusal.headers.get('retry-after'));
  assert.deepEqual([refusal.status, refusal.headers.get('error-code')], [429, 'too_many_requests']);
  assert.ok(seconds > 0 && seconds <= 900);
  assert.match(refusal.headers.get('ratelimit') ?? '', new RegExp(`"unknown-gifts-address";r=0;t=${seconds}$`));
  assert.match(refusal.headers.get('ratelimit-policy') ?? '', /"unknown-gifts-address";q=2;w=900$/);
  for (const { headers } of [unknown, refusal]) {
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8');
    assert.equal(headers.get('cache-control'), 'no-store');
    assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/);
    assert.equal(headers.get('x-robots-tag'), 'noindex, nofollow');
  }
  const wait = seconds <= 60 ? 'a minute' : `${Math.ceil(seconds / 60)} minutes`;
  assert.ok((await refusal.text()).includes(`again in ${wait}.`));
  const program = await open('*/*');
  assert.deepEqual([program.status, await program.json()], [429, { error: 'Too many requests.' }]);
});

test.run();
