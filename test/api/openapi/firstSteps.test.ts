/** Whoever opens `/docs` on simulated providers has a redeemed gift after five clicks. */
import { readFileSync } from 'node:fs';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { testWhere } from '../../support/assertions/testWhere.js';
import { CHROMIUM, onPage } from '../../support/service/browser.js';
import { type Service, startService } from '../../support/service/service.js';

const test = suite<{ service: Service }>('the first steps on the docs page');

test.before(async (context) => {
  const catalogue = JSON.parse(readFileSync('examples/demo.json', 'utf8')) as object;
  context.service = await startService({ split: false, catalogue });
});
test.after(async ({ service }) => service.close());

testWhere(
  test,
  CHROMIUM !== undefined,
  'no Chromium on this machine',
  'lead to a redeemed gift, say what is missing, and take a changed body',
  async ({ service }) => {
    await onPage(async (page) => {
      const faults: string[] = [];
      page.on('pageerror', (error) => faults.push(error.message));
      await page.goto(`${service.url}/docs`);
      const steps = page.locator('#first-steps li');
      const send = async (number: number): Promise<string> => {
        const step = steps.nth(number - 1);
        await step.locator('button').click();
        await step.locator('button:enabled').waitFor();
        return step.locator('pre').innerText();
      };
      assert.is(await send(5), 'First send step 4.');
      for (const [step, status] of [200, 200, 201, 200].entries()) assert.match(await send(step + 1), `${status}\n`);
      const { value } = await steps
        .nth(4)
        .locator('textarea')
        .evaluate((area) => ({ value: (area as { value: string }).value }));
      await steps.nth(4).locator('textarea').fill('{"location_id": "nowhere"}');
      assert.match(await send(5), /^4\d\d\n/);
      await steps.nth(4).locator('textarea').fill(value);
      const redeemed = await send(5);
      assert.match(redeemed, /^201\n/, redeemed);
      const { data } = JSON.parse(redeemed.slice(4)) as { readonly data: { readonly id: string } };
      const token = await tillToken(service);
      const listed = await service.ask('GET', '/api/v2/events?types[]=gift.redeemed&wait=5', { token });
      assert.is(listed.json.data.at(-1)?.data.redemption_id, data.id, listed.text);
      assert.equal(faults, []);
    });
  },
);

test('are not on the page where a provider is real', async () => {
  const service = await startService({
    split: false,
    env: { PAYMENTS: 'stripe', STRIPE_SECRET_KEY: 'sk_test_1', STRIPE_WEBHOOK_SECRET: 'whsec_1' },
  });
  try {
    assert.not.match((await service.ask('GET', '/docs')).text, /first-steps/);
    assert.is((await service.ask('GET', '/docs/first-steps.js')).status, 404);
  } finally {
    await service.close();
  }
});

async function tillToken({ ask }: Service): Promise<string> {
  const logIn = async (body: object, token?: string): Promise<string> => {
    const reply = await ask('POST', '/oauth/token', { body, ...(token === undefined ? {} : { token }) });
    return reply.json.access_token as string;
  };
  const app = await logIn({
    grant_type: 'client_credentials',
    client_id: 'demo-app',
    client_secret: 'demo-app-secret',
  });
  const till = { grant_type: 'password', username: 'till-kettle@demo.example', password: 'demo-till-kettle' };
  return logIn(till, app);
}

test.run();
