/** The API's description, and a page for it that loads nothing from other servers. */
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Middleware } from 'koa';
import { answerFile, PAGE_POLICY, readOnce, type Served, text } from '../pages/files.js';
import { FIRST_STEPS_HTML, FIRST_STEPS_SCRIPT, FIRST_STEPS_STYLE } from './firstSteps.js';

const page = (head = '', before = ''): string => `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Gift Commerce API</title>
<link rel="icon" type="image/png" href="docs/favicon-32x32.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
${head}</head>
<body>
${before}<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
`;

const START = `const url = new URL('../openapi.json', document.currentScript.src).href;
SwaggerUIBundle({ url, dom_id: '#swagger-ui', deepLinking: true, validatorUrl: null, displayRequestDuration: true, defaultModelsExpandDepth: 0 });
`;

/** The only files served from the page's package. */
const ASSETS: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

interface DocsOptions {
  /** Opens the page with requests to send, on demo data and simulated providers. */
  readonly firstSteps?: boolean;
  /** Makes the description of events in AsyncAPI; absent: it is not served. */
  readonly asyncApi?: () => object;
}

/** Each description is made once, by the first request for it: most processes are never asked. */
export function docs(document: () => object, { firstSteps = false, asyncApi }: DocsOptions = {}): Middleware {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve('swagger-ui-dist/package.json'));
  const { version } = require('swagger-ui-dist/package.json') as { readonly version: string };
  const descriptions = new Map([['/openapi.json', document]]);
  if (asyncApi !== undefined) descriptions.set('/asyncapi.json', asyncApi);
  const served = new Map<string, Served>([['/docs/start.js', text(START, 'text/javascript; charset=utf-8')]]);
  const html = firstSteps
    ? page(
        '<link rel="stylesheet" href="docs/first-steps.css">\n',
        `${FIRST_STEPS_HTML}<script src="docs/first-steps.js"></script>\n`,
      )
    : page();
  served.set('/docs', { ...text(html, 'text/html; charset=utf-8'), policy: PAGE_POLICY });
  if (firstSteps) {
    served.set('/docs/first-steps.js', text(FIRST_STEPS_SCRIPT, 'text/javascript; charset=utf-8'));
    served.set('/docs/first-steps.css', text(FIRST_STEPS_STYLE, 'text/css; charset=utf-8'));
  }
  for (const [name, type] of Object.entries(ASSETS)) {
    served.set(`/docs/${name}`, { type, etag: `${version}-${name}`, content: readOnce(join(folder, name)) });
  }

  return async (ctx, next) => {
    // The page's relative addresses, which work behind a prefix, need one spelling.
    if (ctx.path === '/docs/' && (ctx.method === 'GET' || ctx.method === 'HEAD')) return ctx.redirect('../docs');
    const path = ctx.path.replace(/(?<=.)\/$/, '');
    const describe = descriptions.get(path);
    if (describe !== undefined && descriptions.delete(path))
      served.set(path, text(JSON.stringify(describe()), 'application/json; charset=utf-8'));
    const found = served.get(path);
    if (found === undefined) return next();
    await answerFile(ctx, found);
  };
}
