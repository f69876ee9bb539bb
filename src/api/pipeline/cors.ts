/**
 * CORS for listed origins (docs/api/conventions.md#browsers). Not @koa/cors: it answers preflights of unknown paths
 * too, and knows no path's methods.
 */
import type { Context } from 'koa';

/** The headers that a browser may send, besides those that CORS always allows. */
const ALLOWED = [
  'Authorization',
  'Content-Type',
  'Gift-Position',
  'Idempotency-Key',
  'If-None-Match',
  'X-Request-Id',
  'traceparent',
  'tracestate',
].join(', ');

/** The headers that a page may read, besides those that CORS always exposes. */
const EXPOSED = [
  'Allow',
  'Content-Disposition',
  'Decline-Code',
  'ETag',
  'Error-Code',
  'Error-Field',
  'Gift-Position',
  'Idempotent-Replayed',
  'Link',
  'Location',
  'RateLimit',
  'RateLimit-Policy',
  'Retry-After',
  'Transaction-Id',
  'WWW-Authenticate',
  'X-Request-Id',
].join(', ');

/** How long a browser caches the answer to a preflight, seconds. */
const MAX_AGE = '600';

export interface Cors {
  /** The CORS headers of an answer to this origin, errors included. */
  headersFor(origin: string | undefined): Readonly<Record<string, string>>;
  /**
   * Answers a preflight of a listed origin, for a path with these methods; `false`: the request is no such preflight.
   */
  answersPreflight(ctx: Context, methods: string): boolean;
}

/** @returns `undefined` where no origin is listed */
export function corsFor(origins: readonly string[]): Cors | undefined {
  if (origins.length === 0) return undefined;
  const listed = new Set(origins);
  return {
    headersFor(origin) {
      if (origin === undefined || !listed.has(origin)) return { Vary: 'Origin' };
      return { Vary: 'Origin', 'Access-Control-Allow-Origin': origin, 'Access-Control-Expose-Headers': EXPOSED };
    },
    answersPreflight(ctx, methods) {
      const { origin } = ctx.headers;
      if (ctx.method !== 'OPTIONS' || origin === undefined || !listed.has(origin)) return false;
      if (ctx.get('Access-Control-Request-Method') === '') return false;
      ctx.remove('Access-Control-Expose-Headers');
      ctx.set('Access-Control-Allow-Methods', methods);
      ctx.set('Access-Control-Allow-Headers', ALLOWED);
      ctx.set('Access-Control-Max-Age', MAX_AGE);
      ctx.status = 204;
      return true;
    },
  };
}
