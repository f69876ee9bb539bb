/** rate-limiter-flexible's abstraction of a store: part of the package, but neither exported by its entry nor fully typed there. */
declare module 'rate-limiter-flexible/lib/RateLimiterStoreAbstract.js' {
  import type { RateLimiterAbstract, RateLimiterRes } from 'rate-limiter-flexible';

  const RateLimiterStoreAbstract: abstract new <R>(options: { keyPrefix: string; points: number; duration: number }) => RateLimiterAbstract & {
    _upsert(key: string, points: number, msDuration: number, forceExpire: boolean): Promise<R>;
    _get(key: string): Promise<R | null>;
    _delete(key: string): Promise<boolean>;
    _getRateLimiterRes(key: string, changedPoints: number, result: R): RateLimiterRes;
  };
  export default RateLimiterStoreAbstract;
}
