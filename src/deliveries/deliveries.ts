/** Webhooks: the process with the lease delivers, the others wait for it (docs/design.md#webhook-deliveries). */
import { randomFraction } from '../lib/world.js';
import type { Records } from '../ports/readStore.js';
import { workByLease } from '../runtime/coordination/index.js';
import type { Followers } from '../runtime/supervision/followers.js';
import { currentTime } from '../lib/clock.js';
import { RETRY_SCHEDULE, type RetrySchedule } from './retries.js';
import type { Sender } from './sender.js';
import { deliver, type SessionDeps } from './session.js';
import { type DeliveryStatus, deliveryTally } from './tally.js';

export const WEBHOOK_LEASE = 'webhooks';
export const WEBHOOK_PART = 'webhooks';

/**
 * Duration of the lease: longer than others, to outlive a slow write on a starved machine, since webhooks can wait. It
 * is renewed as often as others, and the end of its process is still noticed at once.
 */
export const WEBHOOK_LEASE_MS = 9_000;
const FINISH_MS = 5_000;
/** Far longer than one attempt, which takes 17 s at most. */
const STALLED_MS = 60_000;

export interface DeliveriesDeps extends Omit<
  SessionDeps,
  'tally' | 'health' | 'now' | 'random' | 'schedule' | 'finishMs' | 'stalledMs'
> {
  readonly records: Records;
  readonly sender: Sender;
  /** Names this process; see `LeaseOptions.holder`. */
  readonly holder: string;
  readonly followers: Pick<Followers, 'start'>;
  readonly now?: () => string;
  /** A random number from 0 to 1. */
  readonly random?: () => number;
  readonly schedule?: Partial<RetrySchedule>;
  /** Milliseconds that `close` waits for attempts in progress, default 5,000; later ones are cut and repeated. */
  readonly finishMs?: number;
  /** See `LineDeps.stalledMs`; default one minute. */
  readonly stalledMs?: number;
  /** The lease's duration, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
}

export interface Deliveries {
  status(): DeliveryStatus;
  /** Starts no further attempt, waits a little for those in progress, stores the progress and passes the lease on. */
  close(): Promise<void>;
}

/** Starts the deliveries. A failure is logged and leads to a restart; it is never thrown to the caller. */
export function startDeliveries({
  holder,
  followers,
  now = currentTime,
  random = randomFraction,
  schedule,
  finishMs = FINISH_MS,
  stalledMs = STALLED_MS,
  leaseMs = WEBHOOK_LEASE_MS,
  ...deps
}: DeliveriesDeps): Deliveries {
  const { records, logger, sender } = deps;
  const tally = deliveryTally();
  const session = { ...deps, now, random, finishMs, stalledMs, tally, schedule: { ...RETRY_SCHEDULE, ...schedule } };
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
