import type { Context } from 'koa';
import { HttpError } from './errors.js';
import type { RequestState } from './requestState.js';

/**
 * Admits reads of a path outside of the routers, and names its route for log and metrics.
 * @throws HttpError `method_not_allowed` except for GET and HEAD
 */
export function readOnly(ctx: Context, route: string): void {
  (ctx.state as RequestState).route = route;
  if (ctx.method !== 'GET' && ctx.method !== 'HEAD')
    throw new HttpError('method_not_allowed', { headers: { Allow: 'GET, HEAD' } });
}
