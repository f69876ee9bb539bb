import type { Logger } from 'pino';
import type { RateLimiterRes } from 'rate-limiter-flexible';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import type { SignatureError } from '../../providers/signature.js';
import { networkOf } from '../auth/address.js';
import { tooManyRequests } from '../auth/throttle.js';
import { HttpError } from '../pipeline/errors.js';
import type { Call } from '../pipeline/route.js';

/** Limit for one address in a quarter of an hour; further requests are not even logged. Valid requests don't count. */
const FORGED = { points: 100, duration: 900 };

/**
 * Counts bad signatures by address.
 * @throws HttpError invalid_signature; too_many_requests, with Retry-After, for an address over the limit
 */
export function refuseForgeries(
  logger: Pick<Logger, 'warn'>,
): (call: Pick<Call, 'address' | 'requestId'>, why: SignatureError) => Promise<never> {
  const limiter = new RateLimiterMemory(FORGED);
  return async ({ address, requestId }, { message }) => {
    const full = await limiter.consume(networkOf(address)).then(
      () => undefined,
      (refused: RateLimiterRes) => refused,
    );
    if (full !== undefined) throw tooManyRequests(full.msBeforeNext);
    logger.warn({ req: requestId, cause: message }, 'a webhook with a bad signature was refused');
    throw new HttpError('invalid_signature');
  };
}
