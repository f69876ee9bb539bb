import type { Context } from 'koa';
import type { Quota, QuotaStatus } from '../../runtime/limits/sharedCounter.js';
import type { Principal } from './principal.js';
import type { HttpError } from './errors.js';

/** What limits look at. */
export interface LimitedRequest {
  readonly principal: Principal;
  readonly address: string;
  /** Its `state` gets the headers (`limitHeaders.ts`). */
  readonly ctx: Pick<Context, 'state'>;
}

/** Every method throws HttpError too_many_requests, with headers. None asks a store. */
export interface Limits {
  /** Counts the request of a client or user; one without a valid token for its address. */
  takeRequest(this: void, request: LimitedRequest): void;
  /** Counts a request under `/ops`. */
  takeOpsRequest(this: void, request: LimitedRequest): void;
  /** Before a gift is looked up, and again before the caller learns of it: others may have been looked up meanwhile. */
  refuseGuesser(request: LimitedRequest): void;
  /** Counts a gift that is unknown, before the caller learns that. */
  takeUnknownGift(request: LimitedRequest): void;
}

/** The error of a request whose counter is full. */
export type Refuse = (request: LimitedRequest, quota: Quota, status: QuotaStatus) => HttpError;
