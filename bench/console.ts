/**
 * Every page of the console in headless Chromium, on 100,000 gifts: the time to its first paint and until it shows what
 * it loads, and the largest answer that it asks for. Medians of `--rounds=N` (default 3), each page opened anew.
 * `--gifts=N` takes another number of gifts.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { chromium, type Page } from 'playwright-core';
import { GIFT } from './support/command.js';
import { historyOf } from './support/data.js';
import { median, table, verdict } from './support/report.js';
import { startService } from './support/server.js';

const { values } = parseArgs({
  options: { gifts: { type: 'string', default: '100000' }, rounds: { type: 'string', default: '3' } },
});
const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
if (CHROMIUM === undefined) throw new Error('there is no Chromium on this machine');
const PASSWORD = 'a password for benches only';
/** First paint, ms; largest answer, bytes. */
const BARS = { paintMs: 1_000, bytes: 200_000 };

const data = historyOf(Number(values.gifts));
const staff = join(data.dir, 'bench-staff.json');
writeFileSync(
  staff,
  JSON.stringify({
    users: [{ id: 'staff', username: 'staff', password: PASSWORD, roles: ['support', 'auditor'] }],
    clients: [{ id: 'console', secret: PASSWORD, name: 'Console' }],
  }),
);
execFileSync(process.execPath, [GIFT, 'import', staff], {
  env: { PATH: process.env['PATH'], DATA_DIR: data.dir },
  stdio: ['ignore', 'ignore', 'inherit'],
});
const service = await startService(data.dir);
const browser = await chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox', '--disable-dev-shm-usage'] });
const page = await browser.newPage();
await page.goto(`${service.url}/console`);
await page.getByLabel('Username').fill('staff');
await page.getByLabel('Password').fill(PASSWORD);
await page.getByRole('button', { name: 'Sign in' }).click();
await page.getByRole('button', { name: 'Sign out' }).waitFor();

const gift = data.gifts.at(-1)?.id ?? '';
const transaction = await transactionOf(page);
const PATHS = [
  '/',
  '/find',
  `/gifts/${gift}`,
  '/transactions',
  `/transactions/${transaction}`,
  '/people/u1',
  '/parked',
  '/read-models',
  '/read-models/gifts',
  '/log',
  '/webhooks',
  '/money',
  '/redemptions',
  '/access',
];

/** The transaction of the gift, as its page links it. */
async function transactionOf(opened: Page): Promise<string> {
  await opened.goto(`${service.url}/console#/gifts/${gift}`);
  const link = opened.locator('a[href^="#/transactions/"]').first();
  return ((await link.getAttribute('href')) ?? '').split('/').at(-1) ?? '';
}

interface Visit {
  readonly paintMs: number;
  readonly shownMs: number;
  readonly bytes: number;
}

async function visit(path: string): Promise<Visit> {
  let bytes = 0;
  const weigh = async (response: { body(): Promise<Buffer>; url(): string }): Promise<void> => {
    const body = await response.body().catch(() => Buffer.alloc(0));
    bytes = Math.max(bytes, body.length);
  };
  page.on('response', weigh);
  await page.goto('about:blank');
  await page.goto(`${service.url}/console#${path}`);
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByText('Loading…').first().waitFor({ state: 'detached', timeout: 120_000 });
  const shownMs = (await page.evaluate('performance.now()')) as number;
  const paintMs = (await page.evaluate(
    "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? performance.now()",
  )) as number;
  page.off('response', weigh);
  return { paintMs, shownMs, bytes };
}

const visits = new Map<string, Visit[]>(PATHS.map((path) => [path, []]));
for (let round = 0; round < Number(values.rounds); round++)
  for (const path of PATHS) visits.get(path)?.push(await visit(path));
await browser.close();
await service.stop();
rmSync(staff);

const rows = [...visits].map(([path, of]) => ({
  page: path.replace(/[\da-f]{20,}/, '…'),
  'first paint, ms': Math.round(median(of.map(({ paintMs }) => paintMs))),
  'all shown, ms': Math.round(median(of.map(({ shownMs }) => shownMs))),
  'largest answer, kB': Math.round(Math.max(...of.map(({ bytes }) => bytes)) / 1_000),
}));
table(rows);
const most = (name: 'first paint, ms' | 'largest answer, kB'): number => Math.max(...rows.map((row) => row[name]));
verdict('slowest first paint', most('first paint, ms'), { atMost: BARS.paintMs }, ' ms');
verdict('largest answer', most('largest answer, kB'), { atMost: BARS.bytes / 1_000 }, ' kB');
