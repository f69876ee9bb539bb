/**
 * Types for imports of the package's single files. Its entry loads a limiter for every database, which takes a fiftieth
 * of the service's start time. The entry neither exports nor fully types the abstract store.
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
