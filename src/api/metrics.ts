/** Needs no token (docs/decisions.md#environment-variables) and shows nothing personal. */
import type { Middleware } from 'koa';
import type { Metrics } from '../metrics/metrics.js';
import { HttpError } from './pipeline/errors.js';

export function metricsPage(metrics: Pick<Metrics, 'text' | 'contentType'>): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/metrics' && ctx.path !== '/metrics/') return next();
    (ctx.state as { route?: string }).route = '/metrics';
    if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
      throw new HttpError('method_not_allowed', { headers: { Allow: 'GET, HEAD' } });
    ctx.set('Cache-Control', 'no-store');
    ctx.body = await metrics.text();
    ctx.set('Content-Type', metrics.contentType);
    return undefined;
  };
}
