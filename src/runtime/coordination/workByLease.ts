import type { Records } from '../../ports/readStore.js';
import { acquireLease, type Lease, type LeaseOptions } from './lease.js';

/**
 * Runs `work` whenever this process has the lease, and stands by otherwise, until `options.signal` is aborted.
 * @param work must end once its signal is aborted, for example when the lease is lost
 * @throws any error of `work`, once the lease is released
 */
export async function workByLease(
  records: Records,
  name: string,
  options: LeaseOptions,
  work: (lease: Lease, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!options.signal.aborted) {
    const lease = await acquireLease(records, name, options);
    if (lease === undefined) return;
    try {
      await work(lease, AbortSignal.any([options.signal, lease.lost]));
    } finally {
      await lease.release();
    }
  }
}
