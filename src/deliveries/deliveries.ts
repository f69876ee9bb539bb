/** Webhooks: the process with the lease delivers, the others stand by (docs/decisions.md#webhook-deliveries). */
import type { Records } from '../ports/readStore.js';
import { LEASE_MS } from '../runtime/coordination/lease.js';
import { workByLease } from '../runtime/coordination/workByLease.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { currentTime } from '../lib/clock.js';
import { RETRY_SCHEDULE, type RetrySchedule } from './retries.js';
import type { Sender } from './sender.js';
import { deliver, type SessionDeps } from './session.js';
import { type DeliveryStatus, deliveryTally } from './tally.js';

export const WEBHOOK_LEASE = 'webhooks';
export const WEBHOOK_PART = 'webhooks';

const FINISH_MS = 5_000;

export interface DeliveriesDeps extends Omit<
  SessionDeps,
  'tally' | 'health' | 'now' | 'random' | 'schedule' | 'finishMs'
> {
  readonly records: Records;
  readonly sender: Sender;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
  readonly now?: () => string;
  /** From 0 to 1. */
  readonly random?: () => number;
  readonly schedule?: Partial<RetrySchedule>;
  /** For attempts that are under way when it is closed; default 5,000. They are repeated then. */
  readonly finishMs?: number;
  /** The same in all processes. */
  readonly leaseMs?: number;
}

export interface Deliveries {
  status(): DeliveryStatus;
  /** Starts no attempt, waits a little for those under way, notes how far it came, and passes the lease on. */
  close(): Promise<void>;
}

/** Starts. Failures are logged, and end in a new start; it never throws later. */
export function startDeliveries({
  holder,
  followers,
  now = currentTime,
  random = Math.random,
  schedule,
  finishMs = FINISH_MS,
  leaseMs = LEASE_MS,
  ...deps
}: DeliveriesDeps): Deliveries {
  const { records, logger, sender } = deps;
  const tally = deliveryTally();
  const session = { ...deps, now, random, finishMs, tally, schedule: { ...RETRY_SCHEDULE, ...schedule } };
  const follower = followers.start(
    WEBHOOK_PART,
    async (health) => {
      const { signal: closing, onTrouble } = health;
      const options = { holder, signal: closing, logger, ttlMs: leaseMs, onTrouble };
      await workByLease(records, WEBHOOK_LEASE, options, async (lease, signal) =>
        deliver({ ...session, health }, { signal, lease }),
      );
    },
    { aside: true },
  );
  return {
    status: tally.status,
    async close() {
      await follower.close();
      sender.close();
    },
  };
}
