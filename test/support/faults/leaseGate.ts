/** A process's records, whose lease can come to a gap (its renewal is late) or be lost to another process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { deferred } from '../../../src/lib/async/deferred.js';
import { until } from '../assertions/until.js';
import type { Records } from '../../../src/ports/readStore.js';

export interface LeaseGate {
  readonly records: Records;
  /** The renewal is stored only after `work`, which begins once the lease has run out. */
  gap(leaseMs: number, work: () => Promise<void>): Promise<void>;
  /** Another process has the lease during `work`, and gives it back then. */
  loss(work: () => Promise<void>): Promise<void>;
}

/** @param key of the lease's record */
export function leaseGate(records: Records, key: string): LeaseGate {
  let shut: Promise<void> | undefined;
  let renewals = 0;

  async function take(holder: string | null): Promise<void> {
    for (;;) {
      const record = await records.get<{ readonly fence: number }>(key);
      const value = { holder, fence: (record?.value.fence ?? 0) + 1 };
      if ((await records.put(key, value, { expected: record?.version ?? 0 })) !== undefined) return;
    }
  }

  return {
    records: {
      ...records,
      async put(name, ...rest) {
        if (name === key && shut !== undefined) {
          renewals += 1;
          await shut;
        }
        return records.put(name, ...rest);
      },
    },
    async gap(leaseMs, work) {
      const { promise, resolve } = deferred<void>();
      renewals = 0;
      shut = promise;
      try {
        await until(() => renewals > 0, 'a renewal');
        await sleep(leaseMs + 1);
        await work();
      } finally {
        shut = undefined;
        resolve();
      }
    },
    async loss(work) {
      await take('another process');
      let over = false;
      const renewing = (async () => {
        for (; !over; await sleep(20)) await take('another process');
      })();
      try {
        await work();
      } finally {
        over = true;
        await renewing;
        await take(null);
      }
    },
  };
}
