import type { IncomingMessage } from 'node:http';
import { randomUUID } from '../../lib/world.js';
import type { Principal } from './principal.js';
import type { ErrorPage } from './route.js';

/** State of one request in Koa's `ctx.state`. */
export interface RequestState {
  requestId: string;
  route?: string;
  /** Methods of the path, for the header `Allow`. */
  allow?: string;
  principal?: Principal;
  /** No answer of the route, errors included, may be cached. */
  noStore?: boolean;
  /** Whether large answers are compressed for callers that accept it. */
  compressed?: boolean;
  errorPage?: ErrorPage;
  /** Code of the answer, where it is an error's. */
  errorCode?: string;
  /** Value of the answer's header `RateLimit`; `rateLimitPolicy` is that of `RateLimit-Policy`. */
  rateLimit?: string;
  rateLimitPolicy?: string;
}

const REQUEST_ID = /^[A-Za-z0-9._:-]{1,128}$/;

/** Id of the answer to a request: the caller's own, where it is one (docs/api/conventions.md#paths-and-headers). */
export function requestIdOf({ headers }: Pick<IncomingMessage, 'headers'>): string {
  const given = headers['x-request-id'];
  return typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
}
