import type { Principal } from '../auth/principal.js';

/** Koa's `ctx.state` of a request. */
export interface RequestState {
  requestId: string;
  /** The route's path pattern, for the log. */
  route?: string;
  /** Every method of the route's path, for `Allow`. */
  allow?: string;
  principal?: Principal;
  /** The route's answers, errors included, must not be cached. */
  noStore?: boolean;
}
