/** The console in Chromium, on a service of its own. */
import assert from 'node:assert/strict';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { chromium } from 'playwright-core';
import { suite, type Test } from 'uvu';
import { testWhere } from '../assertions/testWhere.js';
import { DEADLINE_MS } from '../assertions/until.js';
import { CHROMIUM } from './browser.js';
import { type Json, type Service, type ServiceOptions, startService } from './service.js';
import { CATALOGUE, client, user } from '../fixtures/testCatalogue.js';

/** The test catalogue with the console's client, and `boss`, who has both roles. */
export const CONSOLE_CATALOGUE = {
  ...CATALOGUE,
  users: [...CATALOGUE.users, user('boss', { roles: ['support', 'auditor'] })],
  clients: [...CATALOGUE.clients, client('console', { users: ['sue', 'aud', 'boss', 'ann'] })],
};

const openBrowser = async (): Promise<Browser> =>
  chromium.launch({ executablePath: CHROMIUM ?? '', args: ['--no-sandbox', '--disable-dev-shm-usage'] });

export interface Opened {
  readonly context: BrowserContext;
  readonly page: Page;
  /** Errors of scripts, and what the content policy refused. */
  readonly faults: readonly string[];
}

/** Opens a page of the console in a browser context of its own, without signing in. */
export async function opened(
  browser: Browser,
  url: string,
  path = '/',
  options: BrowserContextOptions = {},
): Promise<Opened> {
  const context = await browser.newContext({ reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(DEADLINE_MS);
  const page = await context.newPage();
  const faults = watched(page);
  await page.goto(`${url}/console#${path}`);
  return { context, page, faults };
}

export function watched(page: Page): readonly string[] {
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('console', (message) => {
    // Refused calls are the page's to show; a policy's refusal is a fault of the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      faults.push(message.text());
  });
  return faults;
}

export async function signIn(page: Page, name = 'boss'): Promise<void> {
  await page.getByLabel('Username').fill(`${name}@test.example`);
  await page.getByLabel('Password').fill(`${name}-password`);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: 'Sign out' }).waitFor();
}

/** Opens a page of the console as somebody who is signed in. */
export async function signedIn(browser: Browser, url: string, path = '/', name = 'boss'): Promise<Opened> {
  const one = await opened(browser, url, path);
  await signIn(one.page, name);
  return one;
}

export async function headingOf(page: Page): Promise<string> {
  return page.getByRole('heading', { level: 1 }).innerText();
}

/** The work on a page, which must leave no fault. */
export async function onConsole(one: Opened, work: (page: Page) => Promise<void>): Promise<void> {
  try {
    await work(one.page);
    assert.deepEqual(one.faults, []);
  } finally {
    await one.context.close();
  }
}

export interface ConsoleContext {
  service: Service;
  browser: Browser;
}

interface ConsoleSuite<C extends ConsoleContext> {
  readonly test: Test<C>;
  /** Adds a test that needs the browser. */
  readonly testHere: (name: string, work: (context: C) => Promise<void>) => void;
}

/** Tests on one service and one browser. @param options of the service; default: the console's catalogue */
export function consoleSuite<C extends ConsoleContext = ConsoleContext>(
  title: string,
  options: Omit<ServiceOptions, 'split'> = {},
): ConsoleSuite<C> {
  const test = suite<C>(`console: ${title}`);
  test.before(async (context) => {
    if (CHROMIUM === undefined) return;
    context.service = await startService({ catalogue: CONSOLE_CATALOGUE, ...options, split: false });
    context.browser = await openBrowser();
  });
  test.after(async ({ service, browser }) => {
    await browser?.close();
    await service?.close();
  });
  return {
    test,
    testHere: (name, work) => testWhere(test, CHROMIUM !== undefined, 'no Chromium on this machine', name, work),
  };
}

/** Events of one type in a stream. */
export const ofType = async (service: Service, stream: string, type: string): Promise<Json[]> =>
  ((await service.events.read(stream)) as Json[]).filter((event) => event.type === type);
