import type { Principal } from './principal.js';
import type { ErrorPage } from './route.js';

/** Koa's `ctx.state`. */
export interface RequestState {
  requestId: string;
  route?: string;
  /** For the header `Allow`: every method of the path. */
  allow?: string;
  principal?: Principal;
  /** No answer of the route, errors included, may be cached. */
  noStore?: boolean;
  /** Large answers are compressed for callers that ask for it. */
  compressed?: boolean;
  errorPage?: ErrorPage;
  /** The headers `RateLimit` and `RateLimit-Policy` of every answer. */
  rateLimit?: string;
  rateLimitPolicy?: string;
}
