/**
 * A request as traces see it: it follows the caller's trace where the request says so, and is named by its route's
 * pattern.
 */
import type { Middleware } from 'koa';
import { inSpan } from '../../tracing/spans.js';
import type { RequestState } from './requestState.js';

/** Runs each request in a span. Comes before everything else. */
export const requestSpan: Middleware = (ctx, next) =>
  inSpan(
    () => ({
      name: ctx.method,
      kind: 'server',
      headers: ctx.headers,
      attributes: { 'http.request.method': ctx.method },
    }),
    async (span) => {
      await next();
      const { requestId, route = 'unknown' } = ctx.state as RequestState;
      span.rename(`${ctx.method} ${route}`);
      span.set({ 'http.route': route, 'http.response.status_code': ctx.status, 'gift.request_id': requestId });
      if (ctx.status >= 500) span.fail(String(ctx.status));
    },
  );
