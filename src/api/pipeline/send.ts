import type { Context } from 'koa';
import helmet from 'koa-helmet';
import type { RequestState } from './requestState.js';

/** Security headers, which are the same for every answer, so helmet runs once. */
const SECURE_HEADERS: readonly (readonly [name: string, value: string])[] = secureHeaders();
const JSON_TYPE = 'application/json; charset=utf-8';
const SECURE_HEADERS_FLAT: readonly string[] = SECURE_HEADERS.flat();

function secureHeaders(): [string, string][] {
  const headers = new Map<string, string>();
  const response = {
    setHeader: (name: string, value: string) => headers.set(name, value),
    removeHeader: (name: string) => headers.delete(name),
  };
  // Helmet uses nothing else of a context.
  void helmet()({ req: {}, request: {}, res: response, response: {} } as unknown as Context, async () => undefined);
  if (headers.size === 0) throw new Error('helmet set no header');
  return [...headers];
}

/** Sets the headers of every answer; headers that are set later replace them. */
export function setCommonHeaders(ctx: Context): void {
  for (const [name, value] of SECURE_HEADERS) ctx.res.setHeader(name, value);
  ctx.res.setHeader('X-Request-Id', (ctx.state as RequestState).requestId);
}

/**
 * Sends JSON text, or its compressed bytes, without Koa, which spends more on a dozen headers than most handlers.
 * Setting a header beforehand would cost most of what this saves.
 */
export function sendJson(ctx: Context, status: number, headers: readonly string[], text: string | Buffer): void {
  ctx.respond = false;
  const { requestId } = ctx.state as RequestState;
  const bytes = Buffer.byteLength(text);
  const own = ['X-Request-Id', requestId, 'Content-Type', JSON_TYPE, 'Content-Length', String(bytes)];
  // The headers are joined in one step: an array that grows costs five times the memory.
  ctx.res.writeHead(status, SECURE_HEADERS_FLAT.concat(own, headers));
  // Latin-1 is written faster, and has the same bytes for ASCII.
  if (typeof text === 'string') ctx.res.end(text, bytes === text.length ? 'latin1' : 'utf8');
  else ctx.res.end(text);
}
