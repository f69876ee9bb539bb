/**
 * `RateLimit` and `RateLimit-Policy`, as draft-ietf-httpapi-ratelimit-headers-10 has them (docs/api/limits.md#headers).
 */
import type { Quota, QuotaStatus } from '../../runtime/limits/sharedCounter.js';
import type { RequestState } from './requestState.js';

const LIMIT_HEADER = 'RateLimit';
const POLICY_HEADER = 'RateLimit-Policy';

export const policyItem = ({ name, limit, windowSeconds }: Quota): string => `"${name}";q=${limit};w=${windowSeconds}`;

export const limitItem = ({ name }: Quota, left: number, seconds: number): string => `"${name}";r=${left};t=${seconds}`;

export const listed = (list: string | undefined, item: string): string =>
  list === undefined ? item : `${list}, ${item}`;

/** Adds a limit to the headers of every later answer to the request. */
export function noteLimit(state: RequestState, quota: Quota, { seconds }: QuotaStatus, left: number): void {
  state.rateLimit = listed(state.rateLimit, limitItem(quota, left, seconds));
  state.rateLimitPolicy = listed(state.rateLimitPolicy, policyItem(quota));
}

/** Limit headers as alternating names and values, in a new array; empty where nothing limits the request. */
export function limitHeaders({ rateLimit, rateLimitPolicy }: RequestState): string[] {
  return rateLimit === undefined || rateLimitPolicy === undefined
    ? []
    : [LIMIT_HEADER, rateLimit, POLICY_HEADER, rateLimitPolicy];
}
