/**
 * The files of rate-limiter-flexible that are used, each by itself: its entry loads a limiter for every database there
 * is, which takes a fiftieth of the service's start. The abstraction of a store is neither exported by that entry nor
 * fully typed there.
 */
declare module 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js' {
  import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';

  const RateLimiterStoreAbstract: abstract new <R>(options: {
    keyPrefix: string;
    points: number;
    duration: number;
  }) => RateLimiterAbstract & {
    _upsert(key: string, points: number, msDuration: number, forceExpire: boolean): Promise<R>;
    _get(key: string): Promise<R | null>;
    _delete(key: string): Promise<boolean>;
    _getRateLimiterRes(key: string, changedPoints: number, result: R): RateLimiterRes;
  };
  export default RateLimiterStoreAbstract;
}

declare module 'rate-limiter-flexible/lib/RateLimiterRes.js' {
  export { RateLimiterRes as default } from 'rate-limiter-flexible';
}

declare module 'rate-limiter-flexible/lib/RateLimiterMemory.js' {
  export { RateLimiterMemory as default } from 'rate-limiter-flexible';
}
