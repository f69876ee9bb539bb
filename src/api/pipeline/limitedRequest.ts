import type { Context } from 'koa';
import type { Quota, QuotaStatus } from '../../runtime/limits/sharedCounter.js';
import type { Principal } from './principal.js';
import type { HttpError } from './errors.js';

/** Properties of a request that limits are counted by. */
export interface LimitedRequest {
  readonly principal: Principal;
  readonly address: string;
  /** Koa context, whose `state` gets the limit headers (`limitHeaders.ts`). */
  readonly ctx: Pick<Context, 'state'>;
}

/**
 * Limits on requests and guesses. Every method throws HttpError too_many_requests, with headers, at a full counter.
 * None reads a store.
 */
export interface Limits {
  /** Counts a request for its client or user, and one without a valid token for its address. */
  takeRequest(this: void, request: LimitedRequest): void;
  /** Counts a request under `/ops`. */
  takeOpsRequest(this: void, request: LimitedRequest): void;
  /**
   * Refuses a caller with too many guesses, before a gift is looked up and again before the caller learns of it.
   * Concurrent requests may have looked up others in between.
   */
  refuseGuesser(request: LimitedRequest): void;
  /** Counts the look-up of an unknown gift, before the caller learns that it is unknown. */
  takeUnknownGift(request: LimitedRequest): void;
}

/** The error of a request whose counter is full. */
export type Refuse = (request: LimitedRequest, quota: Quota, status: QuotaStatus) => HttpError;
