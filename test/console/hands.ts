/** What a person at the console does on its pages, by roles and labels, and what may happen to their calls. */
import type { Locator, Page } from 'playwright-core';
import { deferred } from '../../src/lib/async/deferred.js';

/** The form of an action, with the button that opens it. */
export const formOf = (page: Page, label: string): Locator =>
  page.getByRole('group').filter({ has: page.getByRole('button', { name: label, exact: true }) });

/** Opens an action, and types what it takes. @param values by the labels of their fields */
export async function fillIn(page: Page, label: string, values: Readonly<Record<string, string>>): Promise<Locator> {
  const form = formOf(page, label);
  const reason = form.getByLabel('Reason');
  await form.waitFor();
  if (!(await reason.isVisible())) await form.getByRole('button', { name: label, exact: true }).click();
  for (const [name, value] of Object.entries(values)) await form.getByLabel(name).fill(value);
  return form;
}

/** Requests what would happen. @returns what the page says of it */
export async function preview(form: Locator): Promise<string> {
  await form.getByRole('button', { name: 'Show what will happen' }).click();
  return form.getByText('What will happen:').innerText();
}

/** Presses the button that does it: the last one of that name, since the first one opens the form. */
export async function press(form: Locator, label: string): Promise<void> {
  await form.getByRole('button', { name: label, exact: true }).last().click();
}

/** Searches for what a caller has named. */
export async function find(page: Page, named: string, reason = ''): Promise<void> {
  await page.getByRole('link', { name: 'Find' }).click();
  await page.getByLabel('What was named').fill(named);
  await page.getByLabel('Reason').fill(reason);
  await page.keyboard.press('Enter');
  await page.getByRole('region', { name: 'What was found' }).waitFor();
}

/** Follows a link to the page of an id. */
export async function follow(page: Page, id: string): Promise<void> {
  await page.getByRole('link', { name: id, exact: true }).first().click();
  await page.getByRole('heading', { level: 1, name: id }).waitFor();
}

/** What happened of one kind, in the line of events on a page. */
export const eventsOf = (page: Page, type: string): Locator => page.getByRole('listitem').filter({ hasText: type });

/** Has the next call of this path reach the service, and loses its answer. */
export async function loseAnswer(page: Page, path: string): Promise<void> {
  await page.route(
    path,
    async (route) => {
      await route.fetch();
      await route.abort();
    },
    { times: 1 },
  );
}

/** Holds the next call of this path back. @returns a function that lets it go on */
export async function holdCall(page: Page, path: string): Promise<() => void> {
  const held = deferred<void>();
  await page.route(
    path,
    async (route) => {
      await held.promise;
      await route.continue();
    },
    { times: 1 },
  );
  return held.resolve;
}

/** Has the next call of this path find an engine away. */
export async function engineAway(page: Page, path: string): Promise<void> {
  const json = { error: 'Service unavailable.' };
  await page.route(path, async (route) => route.fulfill({ status: 503, json }), { times: 1 });
}

/** Idempotency keys of the calls of a path, as they are made. */
export function keysOf(page: Page, path: RegExp): readonly (string | undefined)[] {
  const keys: (string | undefined)[] = [];
  page.on('request', (request) => {
    if (path.test(request.url())) keys.push(request.headers()['idempotency-key']);
  });
  return keys;
}
