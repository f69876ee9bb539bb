/**
 * Does what is due at a time, once, whatever is killed (docs/decisions.md#scheduled-work): of several processes one, by
 * a lease. The read model says where to look; each decision is made from the streams.
 */
import type { Logger } from 'pino';
import { pause } from '../../lib/async/pause.js';
import type { EventStore } from '../../ports/eventStore.js';
import type { ReadStore } from '../../ports/readStore.js';
import { NotOursError } from '../../processors/runner/retry.js';
import { openWriter } from '../../processors/runner/writing.js';
import { type ScheduleDocument, scheduleProjection } from '../../projections/schedule.js';
import { acquireLease, type Lease } from '../../runtime/coordination/lease.js';
import type { ReadModel } from '../../runtime/readmodels/readModel.js';
import type { FollowerRun, Followers } from '../../runtime/supervision/followers.js';
import { sendDue } from './sendDue.js';

const SCHEDULE_LEASE = 'schedule';
const LOOK_MS = 500;

export interface SchedulerOptions {
  readonly events: EventStore;
  readonly store: ReadStore;
  readonly schedule: ReadModel<ScheduleDocument>;
  /** ISO 8601, UTC, milliseconds. */
  readonly now: () => string;
  /** See `LeaseOptions.holder`. */
  readonly holder: string;
  readonly logger: Logger;
  readonly followers: Pick<Followers, 'start'>;
  /** The lease's duration, milliseconds; the same in all processes. */
  readonly leaseMs?: number;
}

export function startScheduler(options: SchedulerOptions): { close(): Promise<void> } {
  const { store, holder, logger, followers, leaseMs: ttlMs } = options;
  return followers.start('schedule', async (health) => {
    const { signal, onTrouble } = health;
    while (!signal.aborted) {
      const lease = await acquireLease(store.records, SCHEDULE_LEASE, { holder, signal, logger, ttlMs, onTrouble });
      if (lease === undefined) return;
      try {
        await keepSchedule(options, lease, health);
      } finally {
        await lease.release();
      }
    }
  });
}

/** Until the lease is lost. @throws the first failure of a round, once that has tried everything that is due */
async function keepSchedule(
  { events, store, schedule, now }: SchedulerOptions,
  lease: Lease,
  health: FollowerRun,
): Promise<void> {
  const signal = AbortSignal.any([health.signal, lease.lost]);
  const mayAct = (): void => {
    if (signal.aborted || !lease.held) throw new NotOursError('the schedule may have passed to another process');
  };
  const writer = openWriter(events, () => Date.parse(now()));
  while (!signal.aborted) {
    // While it is built for the first time nothing else is held up, so no process is unready for it.
    if ((await store.active(scheduleProjection.name)) !== undefined) {
      try {
        await sendDue({ events, schedule, writer, mayAct }, now(), signal);
      } catch (error) {
        if (signal.aborted || error instanceof NotOursError) return;
        throw error;
      }
    }
    health.well();
    await pause(LOOK_MS, signal);
  }
}
