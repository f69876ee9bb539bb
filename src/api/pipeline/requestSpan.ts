/** Trace span of a request, which continues the caller's trace and is named by the route's pattern. */
import type { Middleware } from 'koa';
import { inSpan } from '../../tracing/spans.js';
import type { RequestState } from './requestState.js';

/** Must be the outermost middleware. */
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
