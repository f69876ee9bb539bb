/**
 * Every page of the console: readable by a screen reader (axe), in light and dark, on a phone, and with texts that
 * would break a page which trusted them.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { brotliCompressSync } from 'node:zlib';
import type { Page } from 'playwright-core';
import { CHROMIUM } from '../support/service/browser.js';
import { redeem } from '../support/service/giftFlow.js';
import { type Service } from '../support/service/service.js';
import { user } from '../support/fixtures/testCatalogue.js';
import {
  CONSOLE_CATALOGUE,
  type ConsoleContext,
  consoleSuite,
  onConsole,
  opened,
  signedIn,
  signIn,
} from '../support/service/console.js';

interface Context extends ConsoleContext {
  /** Paths of all pages, with entities of hostile texts. */
  paths: readonly string[];
}

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
/** Markup, marks that turn the direction of text, emoji, and no place for a line to break. */
const HOSTILE = [
  '<img src=x onerror="document.title=`broken in`"><script>document.title="broken in"</script>',
  '\u05d0\u05d1\u05d2 \u0627\u0644\u0639\u0631\u0628\u064a\u0629 (\u05d3) 1',
  '\u{1f381}'.repeat(100),
  'x'.repeat(200),
];
const WIDTHS = [1_200, 390] as const;
/** Faults of the page's fields on a phone. A reason is a sentence; all other texts are ids, names and numbers. */
const FIELDS = `[...document.querySelectorAll('input:is([type=text], [type=search], :not([type])), textarea')].flatMap((field) => {
  const label = field.labels[0]?.textContent ?? '';
  const faults = [];
  if (parseFloat(getComputedStyle(field).fontSize) < 16) faults.push(label + ' is enlarged');
  if (!label.startsWith('Reason') && (field.autocapitalize !== 'none' || field.getAttribute('autocorrect') !== 'off'))
    faults.push(label + ' is changed');
  return faults;
})`;
/** Largest answer that a page may ask for, in bytes. */
const MOST_BYTES = 200_000;
/** Largest size of the page with its script and style, compressed, in bytes. */
const MOST_BUNDLE = 150_000;

const { test, testHere } = consoleSuite<Context>('pages', {
  catalogue: {
    ...CONSOLE_CATALOGUE,
    users: [...CONSOLE_CATALOGUE.users, user('hostile', { name: HOSTILE[0], phone_number: '07700 900444' })],
  },
});
test.before(async (context) => {
  if (CHROMIUM !== undefined) context.paths = await filled(context.service);
});

/** Makes an entity of each kind, with hostile texts where clients or staff write them. @returns all pages' paths */
async function filled(service: Service): Promise<readonly string[]> {
  const token = await service.userToken('ann');
  const support = await service.userToken('sue');
  const bought = [];
  for (const [at, message] of HOSTILE.entries()) {
    const made = await service.ask('POST', '/api/v2/transactions', {
      token,
      body: {
        payment: { method: 'card', reference: 'pm_card_visa' },
        purchase: {
          type: 'gift',
          reference: 'latte',
          reference_id: HOSTILE[3 - at]?.slice(0, 100),
          message,
          receivers: [{ phone_number: '07700 900444' }],
        },
      },
    });
    assert.equal(made.status, 201, made.text);
    bought.push(made.json.data as { readonly id: string; readonly gifts: readonly string[] });
  }
  const [first] = bought;
  const gift = first?.gifts[0] ?? '';
  const redeemed = await redeem(service, gift);
  assert.equal(redeemed.status, 201, redeemed.text);
  for (const reason of HOSTILE) {
    const blocked = await service.ask('POST', `/ops/gifts/${bought[1]?.gifts[0]}/block`, {
      token: support,
      body: { reason },
    });
    assert.equal(blocked.status, 200, blocked.text);
    await service.ask('POST', `/ops/gifts/${bought[1]?.gifts[0]}/unblock`, { token: support, body: { reason } });
  }
  const hook = await service.ask('POST', '/api/v2/webhook-endpoints', {
    token: await service.clientToken(),
    body: { url: 'https://shop.example/hooks', description: HOSTILE[0]?.slice(0, 100) },
  });
  assert.equal(hook.status, 201, hook.text);
  const trace = (await service.ask('GET', `/ops/log?stream=gift-${gift}`, { token: support })).json.data[0]
    .correlation_id as string;
  return [
    '/',
    '/find',
    ...bought.flatMap(({ gifts }) => gifts.map((id) => `/gifts/${id}`)).slice(0, 2),
    '/transactions',
    `/transactions/${first?.id}`,
    '/people/hostile',
    '/erasures',
    '/parked',
    '/read-models',
    '/read-models/gifts',
    '/log',
    `/log/trace/${trace}`,
    '/webhooks',
    `/webhooks/${hook.json.data.id}`,
    '/money',
    '/redemptions',
    '/access',
    '/nowhere',
  ];
}

/** Waits until a page shows what it loads. */
async function settled(page: Page): Promise<void> {
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByText('Loading…').first().waitFor({ state: 'detached' });
}

async function violations(page: Page): Promise<readonly string[]> {
  await page.evaluate(AXE);
  const found = (await page.evaluate('axe.run()')) as {
    readonly violations: readonly { readonly id: string; readonly nodes: readonly { readonly html: string }[] }[];
  };
  return found.violations.map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

testHere('have nothing that axe objects to, and nothing wider than the window', async ({ service, browser, paths }) => {
  await onConsole(await signedIn(browser, service.url), async (page) => {
    const wrong: string[] = [];
    for (const path of paths) {
      await page.setViewportSize({ width: WIDTHS[0], height: 900 });
      await page.goto(`${service.url}/console#${path}`);
      await settled(page);
      await page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })");
      for (const colorScheme of ['light', 'dark'] as const) {
        await page.emulateMedia({ colorScheme });
        wrong.push(...(await violations(page)).map((one) => `${path}, ${colorScheme}: ${one}`));
      }
      for (const width of WIDTHS) {
        await page.setViewportSize({ width, height: 900 });
        const wider = await page.evaluate(
          'document.documentElement.scrollWidth - document.documentElement.clientWidth',
        );
        if (wider !== 0) wrong.push(`${path} is ${String(wider)} wider than ${width}`);
      }
      assert.notEqual(await page.title(), 'broken in', path);
    }
    assert.deepEqual(wrong, []);
  });
});

testHere('take ids as a phone’s keyboard types them, in fields that it does not enlarge', async (context) => {
  const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };
  const one = await opened(context.browser, context.service.url, '/', phone);
  await onConsole(one, async (page) => {
    const wrong = new Set<string>();
    const note = async (path: string): Promise<void> => {
      for (const fault of (await page.evaluate(FIELDS)) as readonly string[]) wrong.add(`${path}: ${fault}`);
    };
    await page.getByLabel('Username').waitFor();
    await note('sign-in');
    await signIn(page);
    for (const path of context.paths) {
      await page.goto(`${context.service.url}/console#${path}`);
      await settled(page);
      await note(path);
    }
    assert.deepEqual([...wrong], []);
  });
});

testHere('say in their title and heading where one is', async ({ service, browser, paths }) => {
  await onConsole(await signedIn(browser, service.url), async (page) => {
    const titles = new Set<string>();
    for (const path of paths) {
      await page.goto(`${service.url}/console#${path}`);
      await settled(page);
      // The page before has a heading, too.
      await page.waitForFunction(
        `document.activeElement?.tagName === 'H1' && !${JSON.stringify([...titles])}.includes(document.title)`,
      );
      titles.add(await page.title());
    }
    assert.equal(titles.size, paths.length);
  });
});

testHere(
  'take the focus as they are shown, never from a field that somebody types in',
  async ({ service, browser }) => {
    await onConsole(await signedIn(browser, service.url), async (page) => {
      assert.equal(await page.evaluate('document.activeElement.tagName'), 'H1');
      // An observer runs before the browser paints, or takes any input.
      const focused = await page.evaluate(`new Promise((resolve) => {
      new MutationObserver(() => {
        if (document.querySelector('input[type=search]') !== null) resolve(document.activeElement.tagName);
      }).observe(document.body, { childList: true, subtree: true });
      location.hash = '/find';
    })`);
      assert.equal(focused, 'H1');
    });
  },
);

testHere('leave the focus at the heading of what a reason shows', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, '/people/ann', 'sue'), async (page) => {
    await page.getByRole('form', { name: 'Show what is stored' }).getByLabel('Reason').fill('a test');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Export for the person' }).waitFor();
    assert.equal(await page.locator(':focus').textContent(), 'What is stored');
  });
});

testHere('are those of the ids in their addresses', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url), async (page) => {
    for (const id of ['phone:AbCdEfGhIjKlMnOpQrStUv', 'ada@till:4']) {
      await page.goto(`${service.url}/console#/people/${encodeURIComponent(id)}`);
      await page.getByRole('heading', { level: 1, name: `Person ${id}` }).waitFor();
    }
  });
});

testHere('load nothing more where the log knows no such transaction', async ({ service, browser }) => {
  await onConsole(await signedIn(browser, service.url, `/transactions/${'0'.repeat(32)}`), async (page) => {
    await page.getByRole('alert').getByText('the log knows no stream').waitFor();
    await page.getByText('Loading…').waitFor({ state: 'hidden' });
  });
});

testHere('ask for no answer over 200 kB, and for nothing from elsewhere', async ({ service, browser, paths }) => {
  const one = await signedIn(browser, service.url);
  await onConsole(one, async (page) => {
    const large: string[] = [];
    const elsewhere: string[] = [];
    page.on('response', (response) => {
      if (!response.url().startsWith(service.url)) elsewhere.push(response.url());
      if (Number(response.headers()['content-length'] ?? 0) > MOST_BYTES) large.push(response.url());
    });
    for (const path of paths) {
      await page.goto(`${service.url}/console#${path}`);
      await settled(page);
    }
    assert.deepEqual([large, elsewhere], [[], []]);
  });
});

test('fit into 150 kB with their script and style', async () => {
  const sizes = ['index.html', 'console.js', 'console.css'].map(
    (name) => brotliCompressSync(readFileSync(`dist/service/console/${name}`)).length,
  );
  const size = sizes.reduce((sum, one) => sum + one, 0);
  assert.ok(size <= MOST_BUNDLE, `${size} bytes`);
});

test.run();
