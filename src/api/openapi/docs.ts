/** The API's description, and a page for it that loads nothing from other servers. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import type { Context, Middleware } from 'koa';
import { type Coding, codingFor, compressed } from '../pipeline/compression.js';
import { readOnly } from '../pipeline/readOnly.js';
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

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The only files served from the page's package. */
const ASSETS: Readonly<Record<string, string>> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
  'favicon-32x32.png': 'image/png',
};

interface Served {
  readonly type: string;
  readonly etag: string;
  readonly policy?: string;
  /** One shared buffer: copies for slow readers of a large file would fill the memory. */
  content(this: void): Buffer | Promise<Buffer>;
}

/** @param firstSteps opens the page with requests to send, on demo data and simulated providers */
export function docs(document: object, { firstSteps = false } = {}): Middleware {
  const require = createRequire(import.meta.url);
  const folder = dirname(require.resolve('swagger-ui-dist/package.json'));
  const { version } = require('swagger-ui-dist/package.json') as { readonly version: string };
  const served = new Map<string, Served>([
    ['/openapi.json', text(JSON.stringify(document), 'application/json; charset=utf-8')],
    ['/docs/start.js', text(START, 'text/javascript; charset=utf-8')],
  ]);
  const html = firstSteps
    ? page(
        '<link rel="stylesheet" href="docs/first-steps.css">\n',
        `${FIRST_STEPS_HTML}<script src="docs/first-steps.js"></script>\n`,
      )
    : page();
  served.set('/docs', { ...text(html, 'text/html; charset=utf-8'), policy: POLICY });
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
    const found = served.get(ctx.path.replace(/(?<=.)\/$/, ''));
    if (found === undefined) return next();
    await answer(ctx, found);
  };
}

/** Reads the file at once: an update may replace it while the program runs. A failed read is repeated on demand. */
function readOnce(file: string): () => Promise<Buffer> {
  let reading: Promise<Buffer> | undefined;
  const content = async (): Promise<Buffer> => {
    reading ??= readFile(file);
    try {
      return await reading;
    } catch (error) {
      reading = undefined;
      throw error;
    }
  };
  content().catch(() => undefined);
  return content;
}

function text(content: string, type: string): Served {
  const bytes = Buffer.from(content);
  return { type, etag: createHash('sha256').update(content).digest('base64url').slice(0, 22), content: () => bytes };
}

async function answer(ctx: Context, { type, etag, policy, content }: Served): Promise<void> {
  readOnly(ctx, ctx.path);
  ctx.status = 200;
  // The tag is weak, because the plain and the compressed answer have the same.
  ctx.etag = `W/"${etag}"`;
  // Browsers revalidate each time, so that a new release shows at once.
  ctx.set('Cache-Control', 'no-cache');
  if (policy !== undefined) ctx.set('Content-Security-Policy', policy);
  const coding = type.startsWith('image/') ? undefined : codingFor(ctx);
  if (ctx.fresh) {
    ctx.status = 304;
    return;
  }
  const bytes = coding === undefined ? undefined : await compressedOnce(content, coding);
  if (bytes !== undefined) ctx.set('Content-Encoding', coding as string);
  ctx.body = bytes ?? (await content());
  ctx.set('Content-Type', type);
}

const compressedBefore = new WeakMap<Served['content'], Map<Coding, Promise<Buffer | undefined>>>();

async function compressedOnce(content: Served['content'], coding: Coding): Promise<Buffer | undefined> {
  const known = compressedBefore.get(content) ?? new Map<Coding, Promise<Buffer | undefined>>();
  compressedBefore.set(content, known);
  let bytes = known.get(coding);
  if (bytes === undefined) {
    bytes = Promise.resolve(content()).then((plain) => compressed(plain, coding));
    known.set(coding, bytes);
    // A failed read is repeated by the next request.
    bytes.catch(() => known.delete(coding));
  }
  return bytes;
}
