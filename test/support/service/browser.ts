import { existsSync } from 'node:fs';
import { chromium, type Page } from 'playwright-core';

/** `undefined`: there is none on this machine. */
export const CHROMIUM = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

/** Opens a page in a browser of its own, and closes it afterwards. */
export async function onPage(work: (page: Page) => Promise<void>): Promise<void> {
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? '',
    args: ['--no-sandbox', '--disable-dev-shm-usage'],
  });
  try {
    await work(await browser.newPage());
  } finally {
    await browser.close();
  }
}
