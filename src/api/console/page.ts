/** The console's page, with its script and style, from the build (docs/console.md). */
import { readFileSync } from 'node:fs';
import type { Middleware } from 'koa';
import { PACKAGE_ROOT } from '../../lib/packageRoot.js';
import { answerFile, PAGE_POLICY, type Served, text } from '../pages/files.js';

const FILES: Readonly<Record<string, string>> = {
  'index.html': 'text/html; charset=utf-8',
  'console.js': 'text/javascript; charset=utf-8',
  'console.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
};

/** Files are read at once: an update may replace them while the program runs. */
export function consolePage(): Middleware {
  const served = new Map<string, Served>();
  for (const [name, type] of Object.entries(FILES)) {
    const content = readFileSync(new URL(`dist/service/console/${name}`, PACKAGE_ROOT));
    const path = name === 'index.html' ? '/console' : `/console/${name}`;
    served.set(path, { ...text(content, type), policy: PAGE_POLICY });
  }
  return async (ctx, next) => {
    const found = served.get(ctx.path.replace(/\/$/, ''));
    if (found === undefined) return next();
    // The page's relative addresses, which work behind a prefix, need one spelling.
    if (ctx.path === '/console/' && (ctx.method === 'GET' || ctx.method === 'HEAD')) return ctx.redirect('../console');
    await answerFile(ctx, found);
  };
}
