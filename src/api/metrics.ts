/** The metrics page, which needs no token (docs/settings.md) and shows nothing personal. */
import type { Middleware } from 'koa';
import type { Metrics } from '../metrics/metrics.js';
import { readOnly } from './pipeline/readOnly.js';

export function metricsPage(metrics: Pick<Metrics, 'text' | 'contentType'>): Middleware {
  return async (ctx, next) => {
    if (ctx.path !== '/metrics' && ctx.path !== '/metrics/') return next();
    readOnly(ctx, '/metrics');
    ctx.set('Cache-Control', 'no-store');
    ctx.body = await metrics.text();
    ctx.set('Content-Type', metrics.contentType);
    return undefined;
  };
}
