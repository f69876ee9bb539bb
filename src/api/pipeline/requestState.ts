/** What is known of a request while it is answered, in Koa's `ctx.state`. */
import type { Principal } from '../auth/principal.js';

/** What `server.ts` puts into Koa's state before a route runs. */
export interface RequestState {
  requestId: string;
  /** The route's path pattern, for the log. */
  route?: string;
  /** Every method of the route's path, as `Allow` says them. */
  allow?: string;
  principal?: Principal;
  /** The route's answers, errors included, must not be kept by anybody. */
  noStore?: boolean;
}
